#include "files.h"
#include "paths.h"
#include "report.h"

#include "coord/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { CHECKPOINT_MAX = 4096 };

coord_status checkpoint_write(const char *folder, int64_t version, int64_t env_steps,
                              bool solved, coord_error *err)
{
    char path[PATH_SIZE];
    char text[CHECKPOINT_MAX];

    int len =
        snprintf(text, sizeof text,
                 "{\"version\": %" PRId64 ", \"env_steps\": %" PRId64
                 ", \"solved\": %s,\n \"policy\": \"policy-%" PRId64
                 ".safetensors\", \"learner\": \"learner-%" PRId64 ".safetensors\"}\n",
                 version, env_steps, solved ? "true" : "false", version, version);
    coord_status rc = path_make(path, err, "%s/" CHECKPOINT_NAME, folder);
    return rc == COORD_OK ? path_replace(path, (coord_text){text, (size_t)len}, err) : rc;
}

static coord_status read_text(const char *path, char *text, size_t size, coord_text *ret,
                              coord_error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        bool none = errno == ENOENT;
        coord_status rc = report_errno(err, "open", path);
        return none ? COORD_ERR_NOT_FOUND : rc;
    }
    *ret = (coord_text){text, fread(text, 1, size, file)};
    bool good = ferror(file) == 0;
    (void)fclose(file);
    return good ? COORD_OK : report(err, COORD_ERR_IO, "read '%.200s'", path);
}

coord_status checkpoint_read(const char *folder, int64_t *version, int64_t *env_steps,
                             coord_error *err)
{
    char path[PATH_SIZE];
    char buffer[CHECKPOINT_MAX];
    coord_text text = {NULL, 0};
    json_t *tree = NULL;

    coord_status rc = path_make(path, err, "%s/" CHECKPOINT_NAME, folder);
    if (rc == COORD_OK) {
        rc = read_text(path, buffer, sizeof buffer, &text, err);
    }
    if (rc == COORD_OK) {
        rc = coord_json_parse(text, &tree, err);
    }
    if (rc == COORD_OK) {
        rc = coord_json_get_int(tree, "version", version, err);
    }
    if (rc == COORD_OK && env_steps != NULL) {
        rc = coord_json_get_int(tree, "env_steps", env_steps, err);
    }
    json_decref(tree);
    return rc;
}
