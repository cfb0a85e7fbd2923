/* clip.h - size of the gradient, and keeping it in bounds. Gradients come as one flat f32 vector a group. */
#ifndef TY_COMPILER_PASSES_CLIP_H
#define TY_COMPILER_PASSES_CLIP_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/segment.h"

/* The sum of all squares: f32[]. */
ty_val ty_clip_squares(ty_graph *g, const ty_val *grad, int n);
/* Square root of the sum of all squares: f32[]. */
ty_val ty_clip_norm(ty_graph *g, const ty_val *grad, int n_groups);

/* Cut to [-max, max]. */
ty_val ty_clip_to(ty_graph *g, ty_val grad, double max);
/* max / max(norm, max) */
ty_val ty_clip_factor(ty_graph *g, ty_val norm, double max);

/* Replaces each grad[i] by its clipped form. norm: ty_clip_norm of all of them. segments: the tensors of each. */
void ty_clip_apply(ty_graph *g, ty_clip_kind kind, double max, ty_val norm, ty_val *grad, const ty_segments *segments,
                   int n_groups);

#endif
