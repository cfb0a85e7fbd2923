/* draw.h - random words of a vectorised loop, drawn for a stretch of it at a time.
 *
 * Philox makes four words at once (base/rng.h). An element that asks for its own word makes the three of its neighbours
 * too, and a compiler writes that with few vectors: 36 ns an element on one core of a Zen 3, where dropout was 30 %
 * of BERT's step. Where words go up by one from element to element, those of a stretch are made before its loop, in
 * vectors of counters: less than 1 ns an element.
 */
#ifndef TY_TARGET_CPU_DRAW_H
#define TY_TARGET_CPU_DRAW_H

#include "compiler/target/cpu/ahead.h"

/* The longest stretch that has room for its words in the first-level cache; below the shortest one, words come one by
 * one: most of a group would be made in vain. */
enum { TY_DRAW_LEAST = 16, TY_DRAW_MOST = 256 };

/* Whether the stage's loop over `var`, its innermost, draws words in order. constant[]: by instruction, those that
 * stand in front of all loops. */
bool ty_draw_any(const ty_ahead *a, int stage, int var, const uint8_t *constant);
/* Lines before such a loop of up to n points, of `count` of them (an expression), from the value `first` of `var` on.
 * Marks in drawn[] the instructions whose words are w<id>[k] in it. */
void ty_draw_stretch(const ty_ahead *a, int stage, int var, const uint8_t *constant, const char *first,
                     const char *count, int n, uint8_t *drawn);

#endif
