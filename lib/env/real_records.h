/* Durable records of the real world: what real_records.c (the object and its thread) and
 * real_records_file.c (opening its file) share, and the entries of the table. */
#ifndef COORDI_ENV_REAL_RECORDS_H
#define COORDI_ENV_REAL_RECORDS_H

#include "env/real.h"
#include "env/real_claim.h"
#include "env/sql.h"

struct coordi_records {
    coord_loop *loop; /* a reference */
    coordi_thread *thread;
    coordi_claim *claim;
    char *what;
    char *path; /* as given, for error texts */
    int64_t patience_ms;
    coordi_sql sql;  /* the opener's and the readers', then the thread's */
    coordi_job reap; /* joins the thread, frees */

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t wake;  /* of the thread */
    coordi_link queue;    /* writes */
    int64_t check_until_ms;
    bool checking;  /* the thread is to interrupt the opener at that time */
    bool written;   /* no more reads */
    bool closing;   /* the queue is written, then all goes */
    bool abandoned; /* could not be opened: the opener cleans up */
};

/* Opens the claimed file: makes a new one, checks an old one, prepares. A file that is
 * not taken is left as it was. */
coord_status coordi_real_records_open_file(coordi_records *records,
                                           const coordi_records_spec *spec,
                                           int64_t deadline_ms, coord_error *err);

/* Ends what the connection does step by step once it is too late; NULL: no more. */
void coordi_real_records_limit(const coordi_sql *sql, int64_t *deadline_ms);

/* From now on, or no more, the thread interrupts what the connection does when it is too
 * late. */
void coordi_real_records_watch(coordi_records *records, int64_t deadline_ms);
void coordi_real_records_unwatch(coordi_records *records);

coord_status coordi_real_records_open(coord_loop *loop, const coordi_records_spec *spec,
                                      coordi_records **ret, coord_error *err);
coord_status coordi_real_records_read(coordi_records *records, size_t statement,
                                      const coordi_record_value *values, size_t count,
                                      coordi_record_row_fn *row, void *arg,
                                      coord_error *err);
void coordi_real_records_write(coordi_records *records, coordi_record_write *write);
void coordi_real_records_close(coordi_records *records);

#endif
