/* Sanitizers take their time: a test that goes on and on in a plain build takes every
 * so-manieth step, or fewer, in theirs. */
#ifndef TEST_SUPPORT_SANITIZED_H
#define TEST_SUPPORT_SANITIZED_H

#if defined(__SANITIZE_THREAD__)
#define SANITIZED(plain, address, thread) (thread)
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED(plain, address, thread) (address)
#else
#define SANITIZED(plain, address, thread) (plain)
#endif

#endif
