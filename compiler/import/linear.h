/* linear.h - matrices that are inverted and taken apart: what the importers share. All are floats [.., n, n] with n up
 * to TY_LINEAR_MOST, which the caller checks; the steps of an elimination are nodes of the graph, computed in doubles.
 */
#ifndef TY_COMPILER_IMPORT_LINEAR_H
#define TY_COMPILER_IMPORT_LINEAR_H

#include "compiler/ir/graph.h"

enum { TY_LINEAR_MOST = 64 };

/* Whether the matrices of a value are square and small enough. */
bool ty_linear_fits(const ty_graph *g, ty_val a);

/* By elimination with row pivots; then one step of Newton's, X (2 - A X), from what elimination found: that makes the
 * inverse more exact, and its derivative the inverse's own, -X dA X, so that nothing is differentiated through the
 * elimination. A matrix that has none has infinities or NaNs. Source: G. Golub, C. Van Loan, Matrix Computations, 3.4;
 * G. Schulz, Iterative Berechnung der reziproken Matrix, ZAMM 13 (1933). */
ty_val ty_linear_inverse(ty_graph *g, ty_val a);

/* log |det|, [..], and the determinant's sign. Its derivative is the inverse, transposed. */
void ty_linear_log_determinant(ty_graph *g, ty_val a, ty_val *log_size, ty_val *sign);
ty_val ty_linear_determinant(ty_graph *g, ty_val a);

/* L, 0 above the diagonal, with L L^T = A. Of A what is below the diagonal, and it, are read. */
ty_val ty_linear_cholesky(ty_graph *g, ty_val a);

/* A where it is on the diagonal or below (above) it, else 0. */
ty_val ty_linear_triangle(ty_graph *g, ty_val a, bool lower);
/* [.., m, n] to [.., n, m] */
ty_val ty_linear_turned(ty_graph *g, ty_val a);

#endif
