/* tables.h - weights that are updated by rows: tables that the loss only gathers from. Internal to step.c.
 *
 * Of a table of a million rows a batch touches some thousands. Its gradient is zero elsewhere, and yet a dense update
 * computes and adds a gradient of a million rows, and moves all of them and of their moments through memory. With
 * ty_train_spec.sparse_rows such a table is updated in the rows that the batch names, in time and temporaries that
 * depend on the batch alone. What that means:
 *
 *   gradient   one row for each row that the batch names; rows named several times are added up first, in the order of
 *              the batch. All that clips or reports gradients sees these, so that norms are those of the dense gradient
 *   update     the optimizer's rule on those rows of weight and moments. All others keep weight and moments: nothing
 *              decays where a batch does not look. The step k is the step's, not the row's
 *
 * With replicas the numbers of rows and their gradients of all are brought together, or, where that is fewer bytes, the
 * gradients of the whole table are added up.
 *
 * This is torch.optim.SparseAdam for adam and adamw, torch.optim.SGD and Adagrad with sparse gradients; for keras_adam
 * it is tensorflow_addons.optimizers.LazyAdam, for ftrl and keras_adagrad TensorFlow's ResourceSparseApplyFtrlV2 and
 * ResourceSparseApplyAdagradV2, for keras_sgd its scatter_sub. In sgd and adagrad, and Keras' forms of them, a gradient
 * of zero changes nothing: they differ from the dense update in nothing but the cost; adam and ftrl do differ.
 *
 * Refused is what has no such meaning, or none that is worth its name: weight decay and averages change every row at
 * every step; gradients of several batches would be gathered for whole tables; momentum of sgd is PyTorch's for all
 * rows that were ever touched; lamb and lars need the norm of the whole table.
 */
#ifndef TY_COMPILER_PASSES_TABLES_H
#define TY_COMPILER_PASSES_TABLES_H

#include "compiler/passes/parameters.h"

/* After it is known what is trained and before it is arranged: marks what is updated by rows (ty_param.gather). With
 * spec->sparse_all all that can be, else what spec->sparse_rows names. Refuses the rest of the spec where it does not
 * go with it, and names that are read otherwise than by gathering rows. */
int ty_tables_find(ty_param_set *set, const ty_model *m, const ty_graph *g, ty_val loss, const ty_train_spec *spec,
                   ty_error *err);

/* What the nodes marked live gather from a leaf, in *gather[*n]; none if something else reads it, too: returns that
 * node, else TY_NONE. */
uint32_t ty_table_lookups(const ty_graph *g, const uint8_t *live, ty_arena *a, ty_val leaf, ty_val **gather, int *n);

/* Of gradients dres[k] of the table's gathers: the table's rows, and their sums as one flat vector. Fills
 * group->rows. */
ty_val ty_table_gradient(const ty_param_set *set, ty_param_group *group, ty_graph *g, const ty_val *dres);
/* With spec->row_lists, after the gradients: the rows of each table are outputs of the tape ROWS. */
void ty_tables_tell(const ty_param_set *set, const ty_train_spec *spec, ty_graph *g);
/* The group's rows of a state, flat. */
ty_val ty_table_read(const ty_param_group *group, ty_graph *g, int state);
/* The state with new rows, flat. */
ty_val ty_table_write(const ty_param_group *group, ty_graph *g, int state, ty_val rows);

#endif
