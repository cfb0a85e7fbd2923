/* special.h - functions of a number that are made of others: what the importers share. Floats of any type are computed
 * in doubles and come back in their own. Derivatives are right wherever the functions have any.
 */
#ifndef TY_COMPILER_IMPORT_SPECIAL_H
#define TY_COMPILER_IMPORT_SPECIAL_H

#include "compiler/ir/graph.h"

/* log |gamma(x)|, and its derivative. Below 1/2 by reflection, from there by Stirling's series at x + 8. Source:
 * NIST Digital Library of Mathematical Functions, 5.5.3, 5.11.1, 5.5.4, 5.11.2. */
ty_val ty_special_lgamma(ty_graph *g, ty_val x);
ty_val ty_special_digamma(ty_graph *g, ty_val x);

/* y for which erf(y) = x, and for which the normal distribution's share below y is x; infinite at the ends, NaN beyond.
 * Source: M. Giles, Approximating the erfinv function, GPU Computing Gems 2 (2011), then Newton's method. */
ty_val ty_special_erfinv(ty_graph *g, ty_val x);
ty_val ty_special_ndtri(ty_graph *g, ty_val x);

/* x, through which no gradient flows: seen as integers and back. x: float32 or float64. */
ty_val ty_special_held(ty_graph *g, ty_val x);

#endif
