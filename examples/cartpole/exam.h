#ifndef CARTPOLE_EXAM_H
#define CARTPOLE_EXAM_H

#include <stdbool.h>
#include <stdint.h>

enum { EXAM_ROUNDS = 2 };

typedef enum exam_result {
    EXAM_NOT_PASSED,
    EXAM_ANOTHER_ROUND,
    EXAM_SOLVED,
} exam_result;

/* When is which version evaluated, and is it solved? A version has to pass both rounds,
 * with fresh episodes in each: of many versions that are tried some pass one by luck. And
 * it has to pass them with a margin, so that whoever evaluates it later finds the same.
 */
typedef struct exam {
    bool running;
    int64_t version; /* under evaluation, or the last that was */
    int round;       /* of it, from 0 */
    int64_t next;    /* the first version that is due after it */
    double means[EXAM_ROUNDS];
    bool any; /* result yet? then `latest` is the last one */
    double latest;
} exam;

/* All zero is an exam that has not begun, with version 0 due. */

/* Begins with the newest version if one is due. */
bool exam_begin(exam *e, int64_t newest);

/* The running round's mean return. */
exam_result exam_end_round(exam *e, double mean);

/* Episodes are seeded by run, version and round; fits in JSON's integers. */
int64_t exam_seed(const exam *e, int64_t run_seed);

#endif
