/* share.h - kernels that differ in sizes alone share their loops.
 *
 * The stages of a network do the same to tensors of other sizes: a ResNet-50 has 96 distinct kernels and half as many
 * forms. Such texts become one function that takes the numbers in which they differ, and for each kernel a function of
 * its name that calls it, since the C compiler takes its time function by function. Numbers that loops gain from
 * knowing stay in the text: small ones, by which loops are unrolled, and divisors of addresses.
 */
#ifndef TY_TARGET_CPU_SHARE_H
#define TY_TARGET_CPU_SHARE_H

#include "compiler/kernel/texts.h"

/* Sorted texts of ty_render_kernel to texts for ty_ktexts_deal, in memory of the same arena: what stands in front of a
 * function's name is `lead`. No text is longer than those that it stands for and a few lines. */
ty_ktexts ty_share_texts(const ty_ktexts *from, const char *lead);

#endif
