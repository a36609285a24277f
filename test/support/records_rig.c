#include "support/records_rig.h"

#include "env/real_claim.h"

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PATIENCE_MS = 20000 };

/* ---- the folder ---- */

int records_rig_setup(void **state)
{
    const char *above = getenv("TMPDIR");
    records_rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    (void)snprintf(rig->folder, sizeof rig->folder, "%s/coord-records-XXXXXX",
                   above == NULL ? "/tmp" : above);
    assert_non_null(mkdtemp(rig->folder));
    env_rig_open(&rig->env, NULL, NULL);
    *state = rig;
    return 0;
}

static int remove_one(const char *path, const struct stat *about, int type,
                      struct FTW *at)
{
    (void)about;
    (void)type;
    (void)at;
    return remove(path);
}

int records_rig_teardown(void **state)
{
    records_rig *rig = *state;
    env_rig_close(&rig->env);
    const int rc = nftw(rig->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(rig);
    return rc;
}

const char *records_rig_path(const records_rig *rig, const char *name)
{
    static char paths[4][512];
    static size_t turn;
    char *path = paths[turn++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", rig->folder, name);
    return path;
}

size_t records_rig_files(const records_rig *rig)
{
    size_t count = 0;
    DIR *dir = opendir(rig->folder);
    assert_non_null(dir);
    for (struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        count += at->d_name[0] != '.';
    }
    (void)closedir(dir);
    return count;
}

char *records_rig_bytes(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long size = ftell(file);
    assert_true(size >= 0);
    rewind(file);
    char *bytes = malloc((size_t)size + 1);
    assert_non_null(bytes);
    *len = fread(bytes, 1, (size_t)size, file);
    assert_int_equal(*len, size);
    (void)fclose(file);
    return bytes;
}

void records_rig_write(const char *path, const char *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* ---- opened and written ---- */

static void on_told(note *which)
{
    records_rig *rig = which->in->arg;
    if (which->in->told == rig->awaited) {
        env_rig_wake(&rig->env);
    }
}

void records_rig_open(records_rig *rig, const char *name)
{
    coord_error err = {0};
    const coord_status rc =
        notes_open(&rig->notes, rig->env.loop, records_rig_path(rig, name), &err);
    if (rc != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
    rig->notes.on_told = on_told;
    rig->notes.arg = rig;
}

coord_status records_rig_try(records_rig *rig, const coordi_records_spec *spec,
                             coord_error *err)
{
    coordi_records *records = NULL;
    const coord_status rc =
        rig->env.loop->env->records_open(rig->env.loop, spec, &records, err);
    if (rc == COORD_OK) {
        rig->env.loop->env->records_close(records);
    } else {
        assert_null(records);
        assert_int_equal(err->status, rc);
        assert_non_null(strstr(err->text, "notes"));
        assert_non_null(strstr(err->text, spec->path));
    }
    return rc;
}

void records_rig_close(records_rig *rig)
{
    notes_close(&rig->notes);
    rig->notes.records = NULL;
}

typedef struct errand {
    records_rig *rig;
    void (*run)(records_rig *rig);
} errand;

static void run_errand(void *arg)
{
    const errand *at = arg;
    at->run(at->rig);
}

void records_rig_do(records_rig *rig, void (*run)(records_rig *rig), int told)
{
    errand at = {rig, run};
    rig->awaited = told;
    env_rig_do(&rig->env, run_errand, &at);
    assert_true(env_rig_await(&rig->env));
}

static void put_all(records_rig *rig)
{
    for (int i = 0; i < rig->count; i++) {
        rig->note[i] = (note){0};
        notes_put(&rig->notes, &rig->note[i], rig->first_id + i, rig->text);
    }
}

void records_rig_put(records_rig *rig, int64_t first_id, int count, const char *text)
{
    assert_true(count <= RECORDS_RIG_NOTES);
    rig->first_id = first_id;
    rig->count = count;
    rig->text = text;
    records_rig_do(rig, put_all, rig->notes.told + count);
}

void records_rig_settle(const records_rig *rig, const char *name)
{
    coordi_claim *claim = NULL;
    assert_int_equal(coordi_claim_take("notes", records_rig_path(rig, name),
                                       coordi_now(rig->env.loop) + PATIENCE_MS, &claim,
                                       NULL),
                     COORD_OK);
    coordi_claim_release(claim);
}

int64_t records_rig_reopened(records_rig *rig, const char *name)
{
    records_rig_open(rig, name);
    const int64_t count = notes_count(&rig->notes);
    records_rig_close(rig);
    return count;
}
