/* hf_rotary.h - rotary positions (Su et al. 2021), as Llama's family has them: pair i of a head is number i and number
 * i + D / 2, turned by position / theta^(2 i / D).
 */
#ifndef TY_COMPILER_IMPORT_HUGGINGFACE_HF_ROTARY_H
#define TY_COMPILER_IMPORT_HUGGINGFACE_HF_ROTARY_H

#include "compiler/import/huggingface/hf_net.h"

typedef struct hf_rotary {
    ty_var cos, sin; /* [S, R]; R: how many numbers of a head are turned */
    int64_t turned;
} hf_rotary;

/* By rope_parameters, or rope_theta and rope_scaling as files until Transformers 4 have them: the kinds default, linear
 * and llama3 (transformers/modeling_rope_utils.py); any other is refused. length: S; size: D; theta: where the file has
 * none. */
hf_rotary hf_rotary_of(hf_net *n, int64_t length, int64_t size, double theta);
/* The same, by a section that stands elsewhere; NULL: there is none, and the kind is default. */
hf_rotary hf_rotary_by(hf_net *n, const ty_doc *section, int64_t length, int64_t size, double theta);
/* x [B, H, S, D] turned. */
ty_var hf_rotate(hf_net *n, ty_var x, const hf_rotary *r);

#endif
