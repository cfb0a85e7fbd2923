/* phases.h - where compiling spends its time: a stopwatch with laps. Internal to compiler/.
 *
 *     ty_phases_start(&p);
 *     import();     ty_phases_lap(&p, "import");
 *     autodiff();   ty_phases_lap(&p, "gradient");
 *
 * Wall time on the thread that compiles. Laps of one name are added up, so that a pass that runs for each tape is one
 * phase.
 */
#ifndef TY_COMPILER_PHASES_H
#define TY_COMPILER_PHASES_H

#include "compiler/compiler.h"

/* The next lap begins now. Keeps the laps that are there. */
void ty_phases_start(ty_compile_phases *p);
/* What passed since the start or the latest lap is time of `name`, a string constant. */
void ty_phases_lap(ty_compile_phases *p, const char *name);
/* Adds all laps of `from`. */
void ty_phases_add(ty_compile_phases *p, const ty_compile_phases *from);

#endif
