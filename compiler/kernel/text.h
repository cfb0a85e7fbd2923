/* text.h - the parts of a kernel that look the same in C and in CUDA C: addresses, instructions, stores (types are in
 * ctype.h).
 *
 * Loop variable n is `i<n>`, instruction n `v<n>`, the result of reduction n `r<n>`, the memory of buffer n `b<n>`.
 * What mathematics is not an operator is a function of a prelude, `ty_<op>_<type>`. A target writes loops around it.
 */
#ifndef TY_COMPILER_KERNEL_TEXT_H
#define TY_COMPILER_KERNEL_TEXT_H

#include "base/buf.h"
#include "compiler/kernel/ctype.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/lanes.h"

typedef struct ty_ktext {
    const ty_kernel *k;
    const uint32_t *alias; /* buffer whose memory a buffer shares, or itself */
    const int64_t *base;   /* by buffer: taken off its addresses */
    ty_buf *out;
    int indent;
    bool narrow;  /* loop variables are int, and so is the arithmetic of addresses: ty_ktext_fits_int */
    bool columns; /* results of reductions are arrays: r<n>[c] */
    int cut;      /* variable of which the piece [cut_lo, cut_hi) is being written, or -1 */
    int64_t cut_lo, cut_hi;
    const uint32_t *from;       /* by instruction: the one whose number is held, or TY_NONE; NULL: nothing is */
    const char *held, *held_at; /* what stands before and behind <n>[j][w] where number n is held */
    const uint8_t *vector;      /* by instruction: a load that is done, into x<n>[w]; NULL: none is */
    const uint8_t *drawn;       /* by instruction: a random word that is there, in w<id>; NULL: none is */
    const char *drawn_at;       /* what stands behind w<id> */
    const uint8_t *near;        /* by instruction: an op whose quick form will do; NULL: none is */
    const ty_lanes *lanes; /* points of the loop that is being written, whose number is k; NULL: nothing is known */
    const char *first;     /* lanes: the variable's value at the first of them */
    bool at_first;         /* it is being written */
    uint32_t row_guard;    /* instruction: rows in which it is false are left out by the loop; TY_NONE: none are */
} ty_ktext;

/* Spaces at the beginning of a line. */
void ty_ktext_line(ty_ktext *t);
/* A line: these spaces, then the text, which ends with its line end. */
void ty_ktext_linef(ty_ktext *t, const char *fmt, ...) TY_PRINTF(2, 3);
/* `const <type> v<id> = ...;`: a line. */
void ty_ktext_instr(ty_ktext *t, uint32_t id);
/* `b<buffer>[...] = v<value>;`: a line, behind `if (v<guard>)` unless the whole row is left out. */
void ty_ktext_store(ty_ktext *t, const ty_kstore *store);
/* `b<buffer>[...]`: an element. */
void ty_ktext_element(ty_ktext *t, uint32_t buffer, ty_ix addr);
/* `v<value>` as it is in the buffer's memory. */
void ty_ktext_stored(ty_ktext *t, const ty_kstore *store);
/* `<acc> += v<value>;` or what else the reduction does with one more number; a NaN stays: a line. */
void ty_ktext_combine(ty_ktext *t, const ty_kreduction *red, const char *acc);
/* `const long i<var> = ...;`: these n variables, slowest first, from a number q that counts through them: lines. */
void ty_ktext_outer(ty_ktext *t, const int *var, int n);
/* What makes a number of what is read of this type: a function of the prelude, or "". */
const char *ty_ktext_widening(ty_dtype dtype);
/* What a reduction begins with. */
const char *ty_ktext_identity(const ty_kreduction *red);

/* Whether no address, nor anything on the way to one, leaves the int. Numbers that come from memory have no bounds. */
bool ty_ktext_fits_int(const ty_kernel *k, const int64_t *base);
/* The largest bases that leave no address negative that was not; equal for buffers that share memory. */
void ty_ktext_bases(const ty_kernel *k, const uint32_t *alias, int64_t *base);

#endif
