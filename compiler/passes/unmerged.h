/* unmerged.h - Keras' unmerged rows (ty_train_spec.unmerged_rows). Internal to step.c.
 *
 * In Keras the gradient of a table that the loss only gathers from arrives as one row for each look-up, and what is not
 * linear in it takes them one by one. With g[j] the rows of the look-ups of one row of the table:
 *
 *     gradient        sum of g[j]: as everywhere else
 *     squares         where an optimizer squares the gradient: sum of g[j]^2; where it takes its size: sum of |g[j]|
 *     clip norm       the norm is that of all g[j]; the squares are then those of the clipped rows
 *     clip value      each g[j] is clipped, then they are added up
 *     clip keras_global_norm   the norm is that of all g[j]; then they are added up, and squares are the usual ones
 *
 * Rows are merged from the start where gradients of several batches are added up, in tables that something else reads
 * too (a penalty, a product), and in tables that are updated by rows alone (tables.h). The gradient's reported norm is
 * that of merged rows.
 */
#ifndef TY_COMPILER_PASSES_UNMERGED_H
#define TY_COMPILER_PASSES_UNMERGED_H

#include "compiler/passes/loss_scale.h"
#include "compiler/passes/parameters.h"

int ty_unmerged_check(const ty_train_spec *spec, ty_error *err);
/* After ty_tables_find: marks the tables to which the rule makes a difference (ty_param.lookup). */
void ty_unmerged_find(ty_param_set *set, const ty_graph *g, ty_val loss, const ty_train_spec *spec);
/* Of gradients of a table's look-ups: the table's own, in its type. */
ty_val ty_unmerged_gradient(const ty_param_set *set, ty_param *p, ty_graph *g, const ty_val *dres);
/* When all gradients are unscaled: takes the scale from the rows, too. */
void ty_unmerged_unscale(ty_param_set *set, ty_graph *g, const ty_loss_scale *scale);

/* Sums of squares of the group's members, f32[] each, TY_NONE where they are those of the merged gradient. NULL: the
 * group has no unmerged rows. */
const ty_val *ty_unmerged_square_sums(const ty_param_set *set, const ty_param_group *group, ty_graph *g);
/* The group's flat gradient with clipped rows in the place of clipped sums. */
ty_val ty_unmerged_clip(const ty_param_set *set, const ty_param_group *group, ty_graph *g, double max, ty_val grad);
/* What stands for the square of the group's flat clipped gradient, or TY_NONE: its square. */
ty_val ty_unmerged_squares(const ty_param_set *set, const ty_param_group *group, ty_graph *g, const ty_train_spec *spec,
                           ty_val grad);

#endif
