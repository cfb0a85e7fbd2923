/* program.h - a compiled graph with its memory. Internal to compiler/; others see ty_program through compiler.h. */
#ifndef TY_COMPILER_PROGRAM_H
#define TY_COMPILER_PROGRAM_H

#include "compiler/compiler.h"
#include "compiler/exchange.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/interpret.h"
#include "compiler/passes/plan.h"
#include "compiler/passes/shard.h"
#include "compiler/target/cpu/cpu.h"
#include "compiler/target/cuda/mirror.h"
#include "compiler/target/halves.h"

/* A weight of the model file and the memory where it lives now. */
typedef struct ty_weight_place {
    const char *name;
    ty_type type;
    int state;      /* number of the state, or -1: a constant that keeps the bytes of the file */
    int64_t offset; /* elements from the start of the state */
    bool trained;
} ty_weight_place;

typedef struct ty_load ty_load; /* load.h */

struct ty_program {
    ty_arena arena;
    ty_graph *graph; /* lowered; owned */
    int threads;
    int replicas;               /* that share a step */
    int64_t replica;            /* this one's number; 0 where one speaks for all, or runs several */
    ty_exchange given_exchange; /* by which they do */
    ty_exchange exchange;       /* the same, counted (exchange.c); begin NULL: by nothing that was given */
    int n_in_flight;            /* exchanges that were begun and not waited for */
    ty_program *left_before;    /* of programs that are left with such: program.c */
    ty_exchange_call *exchanges;
    uint32_t *exchange_node;     /* of those of tapes */
    ty_begins begins[TY_N_RUNS]; /* these, by plan */
    int n_exchanges;
    const ty_step_parts *parts; /* states of which each replica has a part */
    int n_parts;
    ty_backend backend;
    ty_program *home; /* whose states and slab they are: itself, or the program beside which it was compiled */
    int first_exchange;
    void **state;      /* memory of each state */
    ty_load *load;     /* of what the states begin with; NULL: done */
    ty_binding *input; /* of the graph, but for the replica's number */
    int n_inputs;
    const void **given;    /* inputs of a run, with that number behind them */
    ty_input_range *range; /* of each input; what is NULL where there is no limit; array may be NULL */
    ty_arena facts;        /* weights and ranges, which outlive the graph they came from */
    ty_weight_place *weight;
    int n_weights;
    bool has[TY_N_RUNS]; /* tapes that exist */
    int plan_of[TY_N_RUNS];
    ty_fusion *fusion[TY_N_RUNS];
    ty_plan *plan[TY_N_RUNS];
    ty_cpu *cpu;                  /* TY_BACKEND_CPU */
    ty_interp *interp;            /* TY_BACKEND_INTERPRETER */
    ty_mirror *cuda;              /* TY_BACKEND_CUDA */
    int n_open;                   /* on a CPU: runs of LAST that were started and not finished, at most 2 */
    bool on_gpu;                  /* of the home: the GPU has the states; what is in `state` may be old */
    int *output[TY_N_RUNS];       /* numbers of the graph's outputs on each tape */
    ty_tensor *result[TY_N_RUNS]; /* beside them */
    int n_outputs[TY_N_RUNS];
    ty_compile_report report;
    char hash[65];
};

/* Compiles a graph that the program then owns (also on failure). tapes: the mask of tapes to make. */
int ty_program_of_graph(ty_graph *g, uint32_t tapes, const ty_compile_options *opt, ty_program **out, ty_error *err);
/* Memory of all states: zeros, which cost nothing until they are touched, or those of the program beside. plan_only:
 * none is taken. */
int ty_program_make_states(ty_program *p, bool plan_only, ty_error *err);
/* The bit of a run. */
ty_tape ty_program_tape_of(ty_run run);

/* exchange.c: takes what replicas exchange by from the options, and refuses where there is nothing. */
int ty_program_take_exchange(ty_program *p, const ty_compile_options *opt, ty_error *err);
/* exchange.c: lists the calls of all plans, and those that bring parts of states together. */
void ty_program_list_exchanges(ty_program *p);
/* exchange.c: several GPUs of this process keep parts of states apart from now on. */
int ty_program_divide(ty_program *p, ty_error *err);

/* program.c, what a run consists of: whether it can begin, for which the memory is made ready; all of it, with the
 * interpreter; or, after all of a tape has run on the CPU: no run of it is open, and its outputs are found. */
int ty_program_can_run(ty_program *p, ty_run run, ty_error *err);
/* All inputs of the graph. */
const void *const *ty_program_inputs(ty_program *p, const void *const *inputs);
int ty_program_interpret(ty_program *p, ty_run run, const void *const *inputs, ty_error *err);
/* The states are on the GPU. */
int ty_program_settle_on_gpu(ty_program *p, ty_error *err);
void ty_program_ran_whole(ty_program *p, ty_run run, const void *const *inputs);

/* describe_graph.c: mark[node] = 1 for what the unit computes, 2 for what it reads: leaves, and values that other units
 * have put into memory. */
void ty_unit_mark(const ty_fusion *f, uint32_t unit, uint8_t *mark);

/* describe.c: which part of the step an origin is of, and the origin of what it is the gradient of. */
ty_phase ty_origin_phase(const char *origin);
const char *ty_origin_of_forward(const char *origin);

/* facts.c: fields that say what the kernels come from; returns how many, at most TY_PROGRAM_FACTS. threads: for which
 * kernels were fused. */
enum { TY_PROGRAM_FACTS = 8 };
int ty_program_facts(ty_program *p, const ty_compile_options *opt, int threads, ty_cache_field *out);
/* The threads that a folder of compiled kernels was fused for; `threads` if there is none. */
int ty_program_threads_of(const char *compiled_dir, int threads);

#endif
