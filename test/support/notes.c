#include "support/notes.h"

static const char *const STATEMENTS[NOTES_STATEMENTS] = {
    [NOTES_PUT] = "INSERT INTO note(id, text) VALUES(?1, ?2)",
    [NOTES_ALL] = "SELECT id, text FROM note ORDER BY id",
    [NOTES_COUNT] = "SELECT count(*) FROM note",
    [NOTES_ENDLESS] = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                      "SELECT count(*) FROM n",
    [NOTES_ECHO] = "SELECT ?1",
    [NOTES_DROP] = "DELETE FROM note WHERE id = ?1",
};

coordi_records_spec notes_spec(const char *path)
{
    return (coordi_records_spec){
        .path = path,
        .what = "notes",
        .application = NOTES_APPLICATION,
        .version = NOTES_VERSION,
        .schema = "CREATE TABLE note(id INTEGER PRIMARY KEY,"
                  " text TEXT NOT NULL CHECK(text <> 'bad'));"
                  "CREATE TABLE other(id INTEGER PRIMARY KEY)",
        .statements = STATEMENTS,
        .statement_count = NOTES_STATEMENTS,
        .patience_ms = 20000,
    };
}

coord_status notes_open(notes *in, coord_loop *loop, const char *path, coord_error *err)
{
    const coordi_records_spec spec = notes_spec(path);
    *in = (notes){.loop = loop};
    return loop->env->records_open(loop, &spec, &in->records, err);
}

void notes_close(notes *in)
{
    in->loop->env->records_close(in->records);
}

static void on_done(coordi_record_write *write, const coord_error *failure)
{
    note *which = COORDI_ITEM(write, note, write);
    notes *in = which->in;
    which->told++;
    which->order = ++in->told;
    if (failure != NULL) {
        in->failed++;
        which->error = *failure;
    }
    if (in->on_told != NULL) {
        in->on_told(which);
    }
}

void notes_write(notes *in, note *which, size_t statement, size_t count)
{
    which->in = in;
    which->write.statement = statement;
    which->write.values = which->values;
    which->write.count = count;
    which->write.done = on_done;
    in->loop->env->records_write(in->records, &which->write);
}

void notes_put(notes *in, note *which, int64_t id, const char *text)
{
    which->values[0] = (coordi_record_value){.kind = COORDI_RECORD_NUMBER, .number = id};
    which->values[1] =
        (coordi_record_value){.kind = COORDI_RECORD_TEXT, .text = coord_text_of(text)};
    notes_write(in, which, NOTES_PUT, 2);
}

static bool take_number(const coordi_record_value *values, size_t count, void *arg)
{
    int64_t *number = arg;
    *number =
        count == 1 && values[0].kind == COORDI_RECORD_NUMBER ? values[0].number : -1;
    return true;
}

int64_t notes_count(notes *in)
{
    int64_t number = -1;
    coord_status rc = in->loop->env->records_read(in->records, NOTES_COUNT, NULL, 0,
                                                  take_number, &number, NULL);
    return rc == COORD_OK ? number : -1;
}
