#ifndef CARTPOLE_SIGNALS_H
#define CARTPOLE_SIGNALS_H

/* SIGINT, SIGTERM and SIGHUP as something to poll for. A handler, not a mask: libraries
 * may have threads of their own that would take a masked signal and end the process. */

/* A descriptor that becomes readable with the first of them and stays so; -1 and errno
 * when there is none. For the first lines of main(). */
int signals_open(void);

/* Which one came; 0: none yet. */
int signals_which(void);

#endif
