#include "service/operator_roles.h"

#include <string.h>

static int role_of_letter(char letter)
{
    return letter == 'c'   ? (int)COORD_COLLECTOR
           : letter == 'l' ? (int)COORD_LEARNER
                           : COORDI_OPERATOR_NO_ROLE;
}

static int given_role(const char *given, int64_t rank)
{
    const size_t len = strlen(given);
    if (len == 0) {
        return COORDI_OPERATOR_NO_ROLE;
    }
    return role_of_letter(given[rank < (int64_t)len ? (size_t)rank : len - 1]);
}

/* ---- names ---- */

/* The name of this rank; false: there are fewer, or it is empty. */
static bool find_name(const char *nodes, int64_t rank, coord_text *ret)
{
    const char *at = nodes + strspn(nodes, " ");
    for (; rank > 0; rank--) {
        at = strchr(at, ',');
        if (at == NULL) {
            return false;
        }
        at += 1 + strspn(at + 1, " ");
    }
    ret->ptr = at;
    ret->len = strcspn(at, ", ");
    return ret->len > 0;
}

/* What follows "<job>-"; NULL: it is not of this job. */
static const char *skip_job(coord_text name, const char *job, size_t len)
{
    return len > 0 && name.len > len + 1 && memcmp(name.ptr, job, len) == 0 &&
                   name.ptr[len] == '-'
               ? name.ptr + len + 1
               : NULL;
}

/* Version 1.0 of the server adds its generation to a job's id: "namespace.name.3". */
static const char *find_task(coord_text name, const char *job)
{
    const char *dot = strchr(job, '.');
    job = dot == NULL ? job : dot + 1;
    const char *task = skip_job(name, job, strlen(job));
    dot = strrchr(job, '.');
    return task != NULL || dot == NULL ? task : skip_job(name, job, (size_t)(dot - job));
}

static int named_role(coord_text name, const char *job)
{
    static const struct {
        const char *task;
        coord_role role;
    } KNOWN[] = {{"collector", COORD_COLLECTOR}, {"learner", COORD_LEARNER}};
    const char *task = find_task(name, job == NULL ? "" : job);
    for (size_t i = 0; task != NULL && i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        const size_t len = strlen(KNOWN[i].task);
        if ((size_t)(name.ptr + name.len - task) >= len &&
            memcmp(task, KNOWN[i].task, len) == 0) {
            return (int)KNOWN[i].role;
        }
    }
    return COORDI_OPERATOR_NO_ROLE;
}

/* ---- all of it ---- */

int coordi_operator_role_of(const coordi_operator_roles *roles, int64_t rank)
{
    coord_text name;
    if (rank < 0 || rank == roles->own_rank) {
        return COORDI_OPERATOR_NO_ROLE;
    }
    if (roles->given != NULL) {
        return given_role(roles->given, rank);
    }
    if (roles->nodes != NULL && find_name(roles->nodes, rank, &name)) {
        return named_role(name, roles->job);
    }
    const bool after_us = roles->own_rank >= 0 && rank > roles->own_rank;
    const int64_t place = after_us ? rank - 1 : rank;
    return place < roles->learners ? (int)COORD_LEARNER : (int)COORD_COLLECTOR;
}

bool coordi_operator_rank_read(const char *text, int64_t *ret)
{
    int64_t rank = 0;
    if (text == NULL || text[0] == '\0') {
        *ret = -1;
        return true;
    }
    const size_t len = strlen(text);
    if (len > 9 || strspn(text, "0123456789") != len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        rank = rank * 10 + (text[i] - '0');
    }
    *ret = rank;
    return true;
}
