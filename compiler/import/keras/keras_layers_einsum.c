/* keras_layers_einsum.c - EinsumDense: einsum(equation, x, kernel) + bias. */
#include "compiler/import/einsum.h"
#include "compiler/import/keras/keras.h"

#include <ctype.h>
#include <string.h>

enum { MAX_LETTERS = TY_MAX_RANK };

/* "abc,cd->abd", "...ab,bc->...ac", "ab...,bc->ac...". */
typedef struct equation {
    char in[MAX_LETTERS + 1], kernel[MAX_LETTERS + 1], out[MAX_LETTERS + 1];
    bool left, right; /* where the dots stand */
    int elided;       /* axes behind them */
} equation;

/* Letters up to one of `ends`; dots in front or behind are noted. NULL: refused. */
static const char *equation_term(const char *at, const char *ends, char *letters, bool *left, bool *right)
{
    int n = 0;
    *left = *right = false;
    if (strncmp(at, "...", 3) == 0) {
        *left = true;
        at += 3;
    }
    for (; isalpha((unsigned char)*at) && n < MAX_LETTERS; at++)
        letters[n++] = *at;
    letters[n] = 0;
    if (strncmp(at, "...", 3) == 0) {
        *right = true;
        at += 3;
    }
    return n > 0 && *at == *ends && !(*left && *right) ? at + (*at != 0) : NULL;
}

static bool equation_read(keras_call *c, const char *text, int rank, equation *e)
{
    bool left, right, in_left, in_right;
    const char *at = equation_term(text, ",", e->in, &in_left, &in_right);
    at = at ? equation_term(at, "-", e->kernel, &left, &right) : NULL;
    at = at && !left && !right && *at == '>' ? equation_term(at + 1, "", e->out, &e->left, &e->right) : NULL;
    e->elided = at ? rank - (int)strlen(e->in) : 0;
    bool fits = e->elided == 0 || (e->elided > 0 && (in_left || in_right));
    if (at && fits && in_left == e->left && in_right == e->right)
        return true;
    keras_fail_key(c, "equation",
                   "must be of the form ab,bc->ac, ...a,ab->...b or ab...,bc->ac... and fit an input of %d"
                   " dimensions",
                   rank);
    return false;
}

/* Size of a letter in x, or -1. */
static int64_t letter_in(const equation *e, const ty_type *x, char letter)
{
    const char *at = strchr(e->in, letter);
    return at ? x->dim[at - e->in + (e->left ? e->elided : 0)] : -1;
}

/* Sizes of the letters of the result: output_shape of the configuration has those behind the batch, null for ones that
 * x decides. */
static bool equation_out(keras_call *c, const equation *e, const ty_type *x, int64_t *size)
{
    const ty_doc *shape = keras_config(c, "output_shape");
    bool one = shape && shape->kind == TY_DOC_INT;
    int n = (int)strlen(e->out), first = e->left && e->elided > 0 ? 0 : 1;
    if (!shape || n - first != (int)(one ? 1 : ty_doc_len(shape))) {
        keras_fail_key(c, "output_shape", "must have %d numbers, one for each letter of \"%s\"%s", n - first, e->out,
                       first ? " behind the first" : "");
        return false;
    }
    for (int i = 0; i < n; i++) {
        const ty_doc *given = i < first ? NULL : one ? shape : ty_doc_at(shape, (size_t)(i - first));
        size[i] = letter_in(e, x, e->out[i]);
        if (given && given->kind == TY_DOC_INT && (size[i] < 0 || size[i] == given->integer))
            size[i] = given->integer;
        else if (size[i] < 0 || (given && given->kind != TY_DOC_NULL)) {
            keras_fail_key(c, "output_shape", "does not fit the input at letter %c", e->out[i]);
            return false;
        }
    }
    return true;
}

static bool einsum_kernel(keras_call *c, const equation *e, const ty_type *x, const int64_t *size)
{
    keras_spec kernel = {.label = "kernel",
                         .rank = (int)strlen(e->kernel),
                         .initializer = "kernel_initializer",
                         .regularizer = "kernel_regularizer",
                         .constraint = "kernel_constraint"};
    for (int i = 0; i < kernel.rank; i++) {
        const char *at = strchr(e->out, e->kernel[i]);
        kernel.dim[i] = at ? size[at - e->out] : letter_in(e, x, e->kernel[i]);
        *(at ? &kernel.out_axes : &kernel.in_axes) |= 1u << i;
        if (kernel.dim[i] < 0) {
            keras_fail_key(c, "equation", "has the letter %c in the kernel alone", e->kernel[i]);
            return false;
        }
    }
    keras_add_weight(c, &kernel);
    return true;
}

/* From the first axis with a bias on: sizes there, 1 elsewhere. */
static bool einsum_bias(keras_call *c, const equation *e, const int64_t *size)
{
    const char *axes = keras_text(c, "bias_axes", NULL);
    keras_spec bias = {.label = "bias",
                       .initializer = "bias_initializer",
                       .initializer_absent = "zeros",
                       .regularizer = "bias_regularizer",
                       .constraint = "bias_constraint"};
    for (const char *at = axes; at && *at; at++)
        if (!strchr(e->out, *at)) {
            keras_fail_key(c, "bias_axes", "must be letters of the result \"%s\"", e->out);
            return false;
        }
    for (int i = 0; axes && e->out[i]; i++)
        if (strchr(axes, e->out[i]) || bias.rank > 0)
            bias.dim[bias.rank++] = strchr(axes, e->out[i]) ? size[i] : 1;
    for (int i = 0; axes && e->right && i < e->elided && bias.rank < TY_MAX_RANK; i++)
        bias.dim[bias.rank++] = 1;
    if (bias.rank > 0)
        keras_add_weight(c, &bias);
    return true;
}

void keras_create_einsum_dense(keras_call *c)
{
    const ty_type x = *ty_graph_type(c->g, c->in[0]);
    const char *text = keras_text(c, "equation", "");
    equation e;
    int64_t size[MAX_LETTERS];
    if (!c->failed && keras_config(c, "lora_rank"))
        keras_fail_key(c, "lora_rank", "must be null: LoRA's weights are not known here");
    if (c->failed || !equation_read(c, text, x.rank, &e) || !equation_out(c, &e, &x, size))
        return;
    if (einsum_kernel(c, &e, &x, size))
        einsum_bias(c, &e, size);
}

void keras_call_einsum_dense(keras_call *c)
{
    const char *why, *equation = keras_text(c, "equation", "");
    ty_val in[] = {keras_float(c, c->in[0]), keras_var(c, "kernel")}, bias = keras_var(c, "bias");
    ty_val y = ty_einsum(c->g, equation, in, 2, &why);
    if (why) {
        keras_fail_key(c, "equation", "%s", why);
        return;
    }
    if (bias != TY_NONE)
        y = ty_b_add(c->g, y, bias);
    keras_set(c, 0, keras_activation(c, keras_config(c, "activation"), y));
}
