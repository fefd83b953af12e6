/* The pool of worker threads: run one function on all of them, meet at a barrier. */
#ifndef HEARTH_POOL_H
#define HEARTH_POOL_H

#include "hearth_cpu.h"

typedef struct {
    hearth_pool *pool;
    int32_t thread;  /* this thread's number, 0 is the caller */
    int32_t threads; /* how many take part */
} hearth_team;

typedef void (*hearth_task)(const hearth_team *team, const void *argument);

/* Runs `task` on every thread of the pool, the caller included; returns when all are done. */
void hearth_pool_run(hearth_pool *pool, hearth_task task, const void *argument);

/* Waits until every thread of the team has come here; what they wrote before is then visible. */
void hearth_barrier(const hearth_team *team);

int32_t hearth_pool_isa(const hearth_pool *pool);

#endif
