#include "env/sim.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>

/* Files and environment variables: the world's, in memory. A file is replaced in one go,
 * and what was acknowledged is never lost, as env.h promises of the real ones. */

typedef struct sim_file {
    size_t len;
    char bytes[]; /* closed by a NUL that does not count */
} sim_file;

static void free_values(coordi_map *map)
{
    size_t at = 0;
    void *value;
    while ((value = coordi_map_next(map, &at)) != NULL) {
        coordi_free(value);
    }
    coordi_map_done(map);
}

void coordi_sim_files_done(coord_sim *sim)
{
    free_values(&sim->files);
    free_values(&sim->variables);
    coordi_free(sim->environment);
}

static coord_status put(coord_sim *sim, const char *path, const void *bytes, size_t len,
                        coord_error *err)
{
    sim_file *file = coordi_alloc(sizeof *file + len + 1);
    if (file == NULL) {
        return coordi_fail_nomem(err, path);
    }
    file->len = len;
    if (len > 0) {
        memcpy(file->bytes, bytes, len);
    }
    file->bytes[len] = '\0';
    void *old = coordi_map_get(&sim->files, path);
    if (!coordi_map_put(&sim->files, path, file)) {
        coordi_free(file);
        return coordi_fail_nomem(err, path);
    }
    coordi_free(old);
    return COORD_OK;
}

coord_status coordi_sim_file_read(coord_loop *base, const char *path, size_t max_bytes,
                                  coordi_buf *ret, coord_error *err)
{
    if (base == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "read '%s': no loop, no world", path);
    }
    coord_sim *sim = coordi_sim_loop_of(base)->sim;
    coord_status rc = COORD_OK;
    (void)pthread_mutex_lock(&sim->lock);
    const sim_file *file = coordi_map_get(&sim->files, path);
    if (file == NULL) {
        rc = coordi_fail_errno(err, ENOENT, "open '%s'", path);
    } else if (file->len > max_bytes) {
        rc = coordi_fail(err, COORD_ERR_TOO_BIG, "'%s' has %zu bytes, more than %zu",
                         path, file->len, max_bytes);
    } else {
        coordi_buf_add(ret, file->bytes, file->len);
        rc = ret->failed ? coordi_fail_nomem(err, path) : COORD_OK;
    }
    (void)pthread_mutex_unlock(&sim->lock);
    return rc;
}

coord_status coordi_sim_file_replace(coord_loop *base, const char *path,
                                     const void *bytes, size_t len, coord_error *err)
{
    if (base == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "write '%s': no loop, no world", path);
    }
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    coord_sim *sim = loop->sim;
    coord_status rc = COORD_OK;
    (void)pthread_mutex_lock(&sim->lock);
    if (sim->disk_full) {
        rc = coordi_fail_errno(err, ENOSPC, "write '%s' (%zu bytes)", path, len);
    } else {
        coordi_sim_tell(sim, loop, "write %s", path);
        coordi_sim_mix(sim, bytes, len);
        rc = put(sim, path, bytes, len, err);
    }
    (void)pthread_mutex_unlock(&sim->lock);
    return rc;
}

void coord_sim_set_disk_full(coord_sim *sim, bool full)
{
    if (sim == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&sim->lock);
    sim->disk_full = full;
    (void)pthread_mutex_unlock(&sim->lock);
}

coord_status coord_sim_put_file(coord_sim *sim, const char *path, coord_text content,
                                coord_error *err)
{
    if (sim == NULL || path == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "sim: put_file needs a sim and a path");
    }
    (void)pthread_mutex_lock(&sim->lock);
    coord_status rc = put(sim, path, content.ptr, content.len, err);
    (void)pthread_mutex_unlock(&sim->lock);
    return rc;
}

coord_status coord_sim_get_file(const coord_sim *sim, const char *path,
                                coord_text *content, coord_error *err)
{
    if (sim == NULL || path == NULL || content == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: get_file needs a sim, a path and content");
    }
    coord_sim *s = (coord_sim *)sim; /* the lock is all that changes */
    (void)pthread_mutex_lock(&s->lock);
    const sim_file *file = coordi_map_get(&sim->files, path);
    if (file != NULL) {
        content->ptr = file->bytes;
        content->len = file->len;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return file != NULL
               ? COORD_OK
               : coordi_fail(err, COORD_ERR_NOT_FOUND, "sim: no file '%s'", path);
}

/* ---- environment ---- */

/* Builds the list that environment() hands out; the old one stays when memory is out. */
static bool list_variables(coord_sim *sim)
{
    const char **list = coordi_alloc((sim->variables.count + 1) * sizeof *list);
    if (list == NULL) {
        return false;
    }
    size_t at = 0;
    size_t count = 0;
    const char *variable;
    while ((variable = coordi_map_next(&sim->variables, &at)) != NULL) {
        list[count++] = variable;
    }
    list[count] = NULL;
    coordi_free(sim->environment);
    sim->environment = list;
    return true;
}

static bool set_variable(coord_sim *sim, const char *name, const char *value)
{
    char *old = coordi_map_get(&sim->variables, name);
    if (value == NULL) {
        (void)coordi_map_remove(&sim->variables, name);
    } else {
        size_t size = strlen(name) + strlen(value) + 2;
        char *variable = coordi_alloc(size);
        if (variable == NULL) {
            return false;
        }
        (void)snprintf(variable, size, "%s=%s", name, value);
        if (!coordi_map_put(&sim->variables, name, variable)) {
            coordi_free(variable);
            return false;
        }
    }
    if (!list_variables(sim)) {
        coordi_free(sim->environment); /* it may name what goes now */
        sim->environment = NULL;
        coordi_free(old);
        return false;
    }
    coordi_free(old);
    return true;
}

coord_status coord_sim_set_env(coord_sim *sim, const char *name, const char *value,
                               coord_error *err)
{
    if (sim == NULL || name == NULL || name[0] == '\0' || strchr(name, '=') != NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: set_env needs a sim and a name without '=', got \"%s\"",
                           name == NULL ? "" : name);
    }
    (void)pthread_mutex_lock(&sim->lock);
    bool is_set = set_variable(sim, name, value);
    (void)pthread_mutex_unlock(&sim->lock);
    return is_set ? COORD_OK : coordi_fail_nomem(err, "sim: environment");
}

const char *const *coordi_sim_environment(coord_loop *base)
{
    static const char *const nothing[] = {NULL};
    coord_sim *sim = coordi_sim_loop_of(base)->sim;
    (void)pthread_mutex_lock(&sim->lock);
    const char *const *list = sim->environment;
    (void)pthread_mutex_unlock(&sim->lock);
    return list == NULL ? nothing : list;
}
