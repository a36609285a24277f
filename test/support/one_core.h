/* Where a test runs. */
#ifndef TEST_SUPPORT_ONE_CORE_H
#define TEST_SUPPORT_ONE_CORE_H

/* Keeps this thread, and those that it starts from now on, on one core: the threads of a
 * simulated world run one at a time, and waking each other across cores is most of what
 * they cost. To be called now and then: where others crowd in, it moves on. */
void one_core(void);

#endif
