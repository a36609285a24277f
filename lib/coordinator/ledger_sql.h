/* The ledger's tables and statements: what ledger.c writes and ledger_read.c reads. */
#ifndef COORDI_COORDINATOR_LEDGER_SQL_H
#define COORDI_COORDINATOR_LEDGER_SQL_H

#include "coordinator/ledger.h"

enum {
    COORDI_LEDGER_APPLICATION = 0x4c434f44, /* "LCOD" */
    COORDI_LEDGER_VERSION = 1               /* raise it when the tables change */
};

typedef enum coordi_ledger_statement {
    COORDI_SQL_ABOUT,
    COORDI_SQL_ACCEPT,
    COORDI_SQL_BEGIN,
    COORDI_SQL_REQUEUE,
    COORDI_SQL_REPLACE_TEXT,
    COORDI_SQL_RESULT,
    COORDI_SQL_FAIL,
    COORDI_SQL_END,
    COORDI_SQL_PRUNE,
    COORDI_SQL_CONNECTED,
    COORDI_SQL_LOST,
    COORDI_SQL_PARTED,
    COORDI_SQL_GET_ABOUT,
    COORDI_SQL_GET_LAST,
    COORDI_SQL_GET_TOTALS,
    COORDI_SQL_GET_TASKS,
    COORDI_SQL_GET_WORKERS,
    COORDI_SQL_COUNT
} coordi_ledger_statement;

extern const char coordi_ledger_schema[];
extern const char *const coordi_ledger_statements[COORDI_SQL_COUNT];

/* What a request asked for, as the table spells it. */
const char *coordi_ledger_request_str(coordi_ticket_kind kind);

/* ledger_read.c: fills in *past, and how many tasks have ended. */
coord_status coordi_ledger_read(coord_loop *loop, coordi_records *records,
                                coordi_ledger_past *past, uint64_t *ended, bool *has_key,
                                coord_error *err);
void coordi_ledger_free_past(coordi_ledger_past *past);

static inline coordi_record_value coordi_number(uint64_t number)
{
    return (coordi_record_value){.kind = COORDI_RECORD_NUMBER, .number = (int64_t)number};
}

static inline coordi_record_value coordi_text(coord_text text)
{
    return (coordi_record_value){.kind = COORDI_RECORD_TEXT, .text = text};
}

static inline coordi_record_value coordi_string(const char *string)
{
    return coordi_text(coord_text_of(string));
}

#endif
