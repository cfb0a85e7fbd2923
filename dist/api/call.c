#include "dist/api/call.h"

#include "base/hash.h"
#include "dist/api/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which parts a call of a kind has. */
static const struct call_form {
    const char *text;
    bool reduces, takes_rows, has_root;
} forms[TY_N_CALLS] = {
    [TY_CALL_ALLREDUCE] = {"allreduce", .reduces = true},
    [TY_CALL_ALLGATHER] = {"allgather", .takes_rows = true},
    [TY_CALL_REDUCESCATTER] = {"reducescatter", .reduces = true},
    [TY_CALL_ALLTOALL] = {"alltoall", .takes_rows = true},
    [TY_CALL_BROADCAST] = {"broadcast", .has_root = true},
    [TY_CALL_BARRIER] = {.text = "barrier"},
    [TY_CALL_READ] = {.text = "read"},
    [TY_CALL_WRITE] = {.text = "write"},
    [TY_CALL_SET] = {.text = "process_set"},
    [TY_CALL_UNSET] = {.text = "process_set_free"},
    [TY_CALL_GRADIENTS] = {.text = "gradients_new"},
    [TY_CALL_FORGET] = {.text = "gradients_free"},
    [TY_CALL_STEP] = {.text = "gradients"},
};
static const char *const op_text[] = {"average", "sum", "min", "max", "product"};
static const char *const compression_text[] = {"", " as fp16", " as bf16"};

/* ---- checks ---- */

static int check_options(ty_call *call)
{
    const trainyard_options *o = &call->options;
    if (o->op < 0 || o->op > TRAINYARD_PRODUCT)
        return ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "op %d: expected 0 (average) to 4 (product)", o->op);
    if (o->compression < 0 || o->compression > TRAINYARD_COMPRESS_BF16)
        return ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "compression %d: expected 0 (none), 1 (fp16) or 2 (bf16)",
                        o->compression);
    return TRAINYARD_OK;
}

static int check_tensor(ty_call *call, int i)
{
    char what[32];
    snprintf(what, sizeof what, call->n == 1 ? "in" : "in[%d]", i);
    int code = ty_view_check(&call->in[i], what, &call->err);
    if (code == TRAINYARD_OK && call->out) {
        snprintf(what, sizeof what, call->n == 1 ? "out" : "out[%d]", i);
        code = ty_view_check(&call->out[i], what, &call->err);
        if (code == TRAINYARD_OK && !ty_view_same(&call->in[i], &call->out[i])) {
            char a[TY_VIEW_TEXT_BYTES], b[TY_VIEW_TEXT_BYTES];
            return ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "in is %s, out is %s: they must be alike",
                            ty_view_text(&call->in[i], false, a), ty_view_text(&call->out[i], false, b));
        }
    }
    if (code == TRAINYARD_OK && call->in[i].dtype == TRAINYARD_BOOL && forms[call->kind].reduces &&
        call->options.op == TRAINYARD_AVERAGE)
        return ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "bool has no average: op max is \"any\", op min is \"all\"");
    return code;
}

static int check_call(ty_call *call)
{
    int code = check_options(call);
    for (int i = 0; i < call->n && code == TRAINYARD_OK; i++)
        code = check_tensor(call, i);
    return code;
}

/* ---- init ---- */

/* The caller's structs need not outlive the call that begins. */
static int copy_tensors(ty_call *call, const trainyard_tensor *in, const trainyard_tensor *out, int n)
{
    if (n < 0 || (n > 0 && !in))
        return ty_fault(&call->err, TRAINYARD_E_ARGUMENT, n < 0 ? "the number of tensors is negative" : "in is NULL");
    trainyard_tensor *copy = call->one;
    if (n > 1)
        copy = call->tensors = malloc(2 * (size_t)n * sizeof *copy);
    if (!copy)
        return ty_fault(&call->err, TRAINYARD_E_MEMORY, "no memory for a list of %d tensors", n);
    if (n > 0)
        memcpy(copy, in, (size_t)n * sizeof *copy);
    if (n > 0 && out)
        memcpy(copy + n, out, (size_t)n * sizeof *copy);
    call->in = copy;
    call->out = out && n > 0 ? copy + n : NULL;
    call->n = n;
    return TRAINYARD_OK;
}

void ty_call_init(ty_call *call, ty_call_kind kind, const trainyard_options *options, const trainyard_tensor *in,
                  const trainyard_tensor *out, int n)
{
    memset(call, 0, sizeof *call);
    call->kind = kind;
    if (options) {
        call->options = *options;
        if (options->name)
            snprintf(call->name, sizeof call->name, "%s", options->name);
    }
    call->fault = copy_tensors(call, in, out, n);
    if (!call->fault)
        call->fault = check_call(call);
}

void ty_call_fini(ty_call *call)
{
    free(call->tensors);
    call->tensors = NULL;
}

/* ---- text and word ---- */

static void add_head(const ty_call *call, ty_buf *text)
{
    const struct call_form *form = &forms[call->kind];
    const trainyard_options *o = &call->options;
    ty_buf_adds(text, form->text ? form->text : "");
    if (call->name[0])
        ty_buf_addf(text, " \"%s\"", call->name);
    if (form->reduces && !call->fault) {
        ty_buf_addf(text, " %s%s", op_text[o->op], compression_text[o->compression]);
        if (o->prescale != 0 || o->postscale != 0)
            ty_buf_addf(text, " scaled by %.9g and %.9g", o->prescale, o->postscale);
    }
    if (form->has_root)
        ty_buf_addf(text, " from root %d", call->root);
}

static void add_tensors(const ty_call *call, ty_buf *text)
{
    char view[TY_VIEW_TEXT_BYTES];
    bool free_rows = forms[call->kind].takes_rows;
    if (call->n == 1)
        ty_buf_addf(text, " %s", ty_view_text(&call->in[0], free_rows, view));
    if (call->n > 1)
        ty_buf_addf(text, " of %d tensors", call->n);
    for (int i = 0; call->n > 1 && i < call->n; i++)
        ty_buf_addf(text, "\ntensor %d: %s", i, ty_view_text(&call->in[i], false, view));
}

static void add_text(const ty_call *call, ty_buf *text)
{
    add_head(call, text);
    if (call->fault) {
        ty_buf_addf(text, ": %s", call->err.message);
        return;
    }
    add_tensors(call, text);
    if (call->details)
        ty_buf_addf(text, "\n%s", call->details);
}

static void add_sizes(const ty_call *call, ty_word *word)
{
    word->n_bytes = call->n_bytes;
    for (int i = 0; i < call->n; i++) {
        word->elems[call->in[i].dtype] += ty_view_elems(&call->in[i]);
        word->n_bytes += (int64_t)ty_view_bytes(&call->in[i]);
    }
    if (call->n != 1)
        return;
    word->dtype = call->in->dtype;
    word->rows = ty_view_rows(call->in);
    word->row_elems = ty_view_row_elems(call->in);
    word->room = call->result && call->result->data ? ty_view_rows(call->result) : -1;
}

void ty_call_word(const ty_call *call, bool stop, ty_buf *text, ty_word *word)
{
    memset(word, 0, sizeof *word);
    word->stop = stop;
    word->kind = (int32_t)call->kind;
    word->state = call->kind == TY_CALL_JOIN    ? TY_WORD_JOINED
                  : call->kind == TY_CALL_LEAVE ? TY_WORD_LEAVES
                  : call->fault                 ? TY_WORD_FAULT
                                                : TY_WORD_CALLS;
    if (word->state == TY_WORD_JOINED || word->state == TY_WORD_LEAVES)
        return;
    add_text(call, text);
    word->text_bytes = (int64_t)text->len;
    word->form = ty_fnv1a(TY_FNV_START, text->data, text->len);
    word->op = call->options.op;
    word->compression = call->options.compression;
    word->root = call->root;
    if (!call->fault)
        add_sizes(call, word);
}
