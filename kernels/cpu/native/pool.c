/* Worker threads that spin for a moment before they sleep.
 *
 * A step has some three hundred barriers of a fraction of a microsecond, so threads inside a step
 * spin. Between steps they spin for SPIN_ROUNDS and then sleep on a condition, so an idle engine
 * takes no CPU. A spinning thread yields now and then: the machine may have fewer free cores than
 * the pool has threads, and then the thread that all wait for must be let in.
 */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SPIN_ROUNDS = 4000, ROUNDS_BEFORE_YIELD = 2000, CACHE_LINE = 64 };

struct hearth_pool {
    atomic_uint arrived;
    char apart1[CACHE_LINE]; /* each of the three is written while others spin on the next */
    atomic_uint phase;
    char apart2[CACHE_LINE];
    atomic_uint generation; /* counts tasks */
    char apart3[CACHE_LINE];
    hearth_task task;
    const void *argument;
    atomic_int closing;
    atomic_int sleepers;
    int32_t threads;
    int32_t isa;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t *workers;
    hearth_team *teams;
};

static inline void relax(unsigned round) {
    if (round % ROUNDS_BEFORE_YIELD == ROUNDS_BEFORE_YIELD - 1) {
        sched_yield();
    } else {
        __builtin_ia32_pause();
    }
}

void hearth_barrier(const hearth_team *team) {
    hearth_pool *pool = team->pool;
    if (team->threads == 1) {
        return;
    }
    unsigned phase = atomic_load_explicit(&pool->phase, memory_order_relaxed);
    unsigned before = atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel);
    if (before + 1 == (unsigned)team->threads) {
        atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&pool->phase, phase + 1, memory_order_release);
        return;
    }
    for (unsigned round = 0;
         atomic_load_explicit(&pool->phase, memory_order_acquire) == phase; round++) {
        relax(round);
    }
}

/* Waits for a task after `seen`; returns its number. */
static unsigned next_task(hearth_pool *pool, unsigned seen) {
    for (unsigned round = 0; round < SPIN_ROUNDS; round++) {
        unsigned now = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (now != seen) {
            return now;
        }
        __builtin_ia32_pause();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    unsigned now;
    while ((now = atomic_load(&pool->generation)) == seen) {
        pthread_cond_wait(&pool->wake, &pool->mutex);
    }
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
    return now;
}

static void publish(hearth_pool *pool) {
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
    }
}

static void *work(void *argument) {
    const hearth_team *team = argument;
    hearth_pool *pool = team->pool;
    unsigned seen = 0;
    for (;;) {
        seen = next_task(pool, seen);
        if (atomic_load(&pool->closing)) {
            return NULL;
        }
        pool->task(team, pool->argument);
        hearth_barrier(team);
    }
}

void hearth_pool_run(hearth_pool *pool, hearth_task task, const void *argument) {
    pool->task = task;
    pool->argument = argument;
    publish(pool);
    task(&pool->teams[0], argument);
    hearth_barrier(&pool->teams[0]);
}

int32_t hearth_pool_isa(const hearth_pool *pool) { return pool->isa; }

static void stop_workers(hearth_pool *pool, int32_t started) {
    atomic_store(&pool->closing, 1);
    publish(pool);
    for (int32_t i = 1; i < started; i++) {
        pthread_join(pool->workers[i], NULL);
    }
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool->teams);
    free(pool);
}

hearth_pool *hearth_pool_open(int32_t threads, int32_t isa) {
    if (threads < 1 || isa < 1 || isa > hearth_best_isa()) {
        return NULL;
    }
    hearth_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) {
        return NULL;
    }
    pool->threads = threads;
    pool->isa = isa;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    pool->teams = calloc((size_t)threads, sizeof *pool->teams);
    if (pool->workers == NULL || pool->teams == NULL) {
        stop_workers(pool, 1);
        return NULL;
    }
    for (int32_t i = 0; i < threads; i++) {
        pool->teams[i] = (hearth_team){.pool = pool, .thread = i, .threads = threads};
    }
    for (int32_t i = 1; i < threads; i++) {
        if (pthread_create(&pool->workers[i], NULL, work, &pool->teams[i]) != 0) {
            stop_workers(pool, i);
            return NULL;
        }
    }
    return pool;
}

void hearth_pool_close(hearth_pool *pool) { stop_workers(pool, pool->threads); }
