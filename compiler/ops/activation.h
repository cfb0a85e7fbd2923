/* activation.h - the tanh form of GELU as numbers, for references: x (1 + tanh(u)) / 2, u = sqrt(2 / pi)
 * (x + 0.044715 x^3). */
#ifndef TY_COMPILER_OPS_ACTIVATION_H
#define TY_COMPILER_OPS_ACTIVATION_H

double ty_gelu_tanh(double x);
double ty_gelu_tanh_slope(double x); /* its derivative */

#endif
