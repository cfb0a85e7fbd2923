/* dump.h - what the compiler has at hand, as files in the folder options.dump_dir; without one nothing is written.
 *
 *     ty_dump_graph(opt, "graph.2.lower.txt", g)              the text form, which reads back
 *     ty_dump_kernels(opt, "kernels.last.txt", plan)          of a tape: kernels and calls in order, with their layers
 *     ty_dump_phases(opt, &phases)                            compile.txt: milliseconds of each
 *
 * A folder or file that cannot be written is no reason not to compile.
 */
#ifndef TY_COMPILER_DUMP_H
#define TY_COMPILER_DUMP_H

#include "compiler/compiler.h"
#include "compiler/passes/plan.h"

void ty_dump_graph(const ty_compile_options *opt, const char *name, const ty_graph *g);
void ty_dump_kernels(const ty_compile_options *opt, const char *name, const ty_plan *plan);
/* opt may be NULL. */
void ty_dump_phases(const ty_compile_options *opt, const ty_compile_phases *phases);

#endif
