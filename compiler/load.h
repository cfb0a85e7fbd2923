/* load.h - what is done beside the passes: weights go from the model's file to their arenas, memory that the step will
 * change becomes present, the library that multiplies gets ready. Internal to compiler/.
 *
 *     ty_load_ahead(options)      what every program comes to begins, before there is one
 *     ty_load_start(p, model)     when the arenas are there; other threads begin
 *     ty_load_weights(p)          weights are in place, and the file's pages are given back
 *     ty_load_expect(p, at, n)    n bytes at `at` become present as well, when the arenas are
 *     ty_load_end(p)              all is done: before the first run
 *     ty_load_drop(p)             what is begun is done: when the program goes
 *
 * Weights come first. On the way no more is resident than the weights twice, or all arenas once.
 */
#ifndef TY_COMPILER_LOAD_H
#define TY_COMPILER_LOAD_H

#include "compiler/model.h"
#include "compiler/program.h"

/* The library of products; the first call that needs it waits for it. options: may be NULL. ty_program_free awaits its
 * end, ty_load_give_up where there will be no program. */
void ty_load_ahead(const ty_compile_options *options);
void ty_load_give_up(void);
/* model: whose bytes the states begin with, which must live until ty_load_weights; NULL: memory of somebody else. runs:
 * else nothing is made ready but the weights. */
int ty_load_start(ty_program *p, const ty_model *model, bool runs, ty_error *err);
void ty_load_weights(ty_program *p);
/* Temporaries of the step. They must live until ty_load_end. */
void ty_load_expect(ty_program *p, void *memory, size_t n_bytes);
/* Neither does anything the second time. */
void ty_load_end(ty_program *p);
void ty_load_drop(ty_program *p);

#endif
