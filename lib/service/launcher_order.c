#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "service/launcher.h"

static const coord_launcher_spec DEFAULTS = {
    .size = sizeof(coord_launcher_spec),
};

void coord_launcher_spec_init(coord_launcher_spec *spec, size_t size)
{
    coordi_options_init(spec, size, &DEFAULTS, sizeof DEFAULTS);
}

/* ---- lists of strings ---- */

static size_t count_strings(const char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL) {
        count++;
    }
    return count;
}

static void free_strings(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        coordi_free(list[i]);
    }
    coordi_free(list);
}

/* NULL: out of memory. */
static char **copy_strings(const char *const *from, size_t count)
{
    char **copy = coordi_zalloc((count + 1) * sizeof *copy);
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = coordi_strdup(from[i]);
        if (copy[i] == NULL) {
            free_strings(copy);
            return NULL;
        }
    }
    return copy;
}

/* ---- environment ---- */

static size_t name_len(const char *variable)
{
    return strcspn(variable, "=");
}

/* Is this variable set, or removed, by one of the list? */
static bool is_named_in(const char *variable, const char *const *list, size_t count)
{
    const size_t len = name_len(variable);
    for (size_t i = 0; i < count; i++) {
        if (name_len(list[i]) == len && memcmp(list[i], variable, len) == 0) {
            return true;
        }
    }
    return false;
}

/* What the caller's environment becomes with the changes; of changes to one name the last
 * counts. NULL: out of memory. */
static char **merge(const char *const *before, const char *const *changes)
{
    const size_t old_count = count_strings(before);
    const size_t change_count = count_strings(changes);
    const char **all = coordi_alloc((old_count + change_count + 1) * sizeof *all);
    if (all == NULL) {
        return NULL;
    }
    size_t count = 0;
    for (size_t i = 0; i < old_count; i++) {
        if (!is_named_in(before[i], changes, change_count)) {
            all[count++] = before[i];
        }
    }
    for (size_t i = 0; i < change_count; i++) {
        const bool sets = strchr(changes[i], '=') != NULL;
        if (sets && !is_named_in(changes[i], changes + i + 1, change_count - i - 1)) {
            all[count++] = changes[i];
        }
    }
    char **merged = copy_strings(all, count);
    coordi_free(all);
    return merged;
}

/* ---- orders ---- */

coord_status coordi_launcher_check_name(const char *name, coord_error *err)
{
    const size_t len = name == NULL ? 0 : strlen(name);
    bool plain = len > 0 && len < COORD_ID_SIZE;
    for (size_t i = 0; plain && i < len; i++) {
        const unsigned char c = (unsigned char)name[i];
        plain = c >= 0x20 && c != 0x7f;
    }
    if (plain) {
        return COORD_OK;
    }
    return coordi_fail(err, COORD_ERR_ARG,
                       "launcher: a name must have 1 to 255 bytes, without control "
                       "characters");
}

static coord_status check(const coord_launcher_spec *spec, coord_error *err)
{
    coord_status rc = coordi_launcher_check_name(spec->name, err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (spec->argv == NULL || spec->argv[0] == NULL || spec->argv[0][0] == '\0') {
        return coordi_fail(err, COORD_ERR_ARG, "launcher: '%s' has no program (argv[0])",
                           spec->name);
    }
    for (size_t i = 0; i < count_strings(spec->environment); i++) {
        if (name_len(spec->environment[i]) == 0) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "launcher: environment[%zu] of '%s' has no name: expected "
                               "NAME=value, got '%.100s'",
                               i, spec->name, spec->environment[i]);
        }
    }
    return COORD_OK;
}

coord_status coordi_order_init(coordi_order *order, coord_loop *loop,
                               const coord_launcher_spec *spec, coord_error *err)
{
    coord_launcher_spec ours = DEFAULTS;
    coord_status rc =
        coordi_options_adopt(&ours, sizeof ours, spec, "coord_launcher_spec", err);
    if (rc == COORD_OK) {
        rc = check(&ours, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    *order = (coordi_order){
        .name = coordi_strdup(ours.name),
        .argv = copy_strings(ours.argv, count_strings(ours.argv)),
        .envp = merge(loop->env->environment(loop), ours.environment),
        .cwd = ours.cwd == NULL ? NULL : coordi_strdup(ours.cwd),
        .on_line = ours.on_line,
        .on_exit = ours.on_exit,
        .user = ours.user,
    };
    if (order->name == NULL || order->argv == NULL || order->envp == NULL ||
        (ours.cwd != NULL && order->cwd == NULL)) {
        coordi_order_done(order);
        return coordi_fail_nomem(err, "launcher");
    }
    return COORD_OK;
}

void coordi_order_done(coordi_order *order)
{
    coordi_free(order->name);
    free_strings(order->argv);
    free_strings(order->envp);
    coordi_free(order->cwd);
    *order = (coordi_order){0};
}
