/* activation.h - functions as numbers, for references; and GELU in the form that other programs know. */
#ifndef TY_COMPILER_OPS_ACTIVATION_H
#define TY_COMPILER_OPS_ACTIVATION_H

#include "compiler/ir/graph.h"

/* The tanh form of GELU: x (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3). */
double ty_gelu_tanh(double x);
double ty_gelu_tanh_slope(double x); /* its derivative */

/* The ratio of Mills at |x|: exp(x^2 / 2) times the integral of exp(-t^2 / 2) from |x| to infinity. */
double ty_mills(double x);

/* x (1 + erf(x / sqrt 2)) / 2, and the tanh form, of a float x. */
ty_val ty_gelu_by_erf(ty_graph *g, ty_val x);
ty_val ty_gelu_by_tanh(ty_graph *g, ty_val x);

#endif
