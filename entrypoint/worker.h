/* worker.h - the child of `train`: reads the job under /opt/ml and becomes what it asks for, the user's program or the
 * built-in trainer. */
#ifndef TY_ENTRYPOINT_WORKER_H
#define TY_ENTRYPOINT_WORKER_H

/* args: what stood behind `train`, NULL-terminated: overrides of the recipe, or more arguments for the program. Returns
 * the exit status; never returns when it becomes the program. */
int ty_worker_run(const char *const *args);
/* The same process as a rank of the built-in trainer, started by the workers' agents (rank.h). Writes no failure file:
 * the worker does, for the rank that was first to fail. */
int ty_worker_run_rank(const char *const *args);

#endif
