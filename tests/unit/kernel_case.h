/* kernel_case.h - graphs of one input and one kernel: its text, and its numbers beside the interpreter's.
 *
 * Include after cmocka.h and evaluate.h.
 */
#ifndef TY_TESTS_KERNEL_CASE_H
#define TY_TESTS_KERNEL_CASE_H

#include "compiler/passes/fuse.h"
#include "compiler/program.h"
#include "compiler/target/cpu/render.h"

/* The graph fused, and the only kernel that it becomes. The caller frees the fusion. */
static inline const ty_kernel *case_kernel(const char *name, ty_graph *g, ty_fusion **f)
{
    const ty_kernel *k = NULL;
    ty_error err = {0};
    int n = 0;
    if (ty_pass_fuse(g, TY_TAPE_EVAL, 1, f, &err) < 0)
        fail_msg("%s: %s", name, err.message);
    for (uint32_t u = 0; u < (*f)->n_units; u++)
        if ((*f)->unit[u].kind == TY_UNIT_KERNEL) {
            k = (*f)->unit[u].kernel;
            n++;
        }
    if (n != 1)
        fail_msg("%s: expected one kernel, found %d", name, n);
    return k;
}

/* Whether the kernel's text for a CPU has these words. */
static inline void case_expect_words(const char *name, const ty_kernel *k, const char *words, bool there)
{
    uint32_t alias[16];
    int64_t base[16] = {0};
    ty_buf text;
    for (int i = 0; i < k->n_buffers; i++)
        alias[i] = (uint32_t)i;
    ty_buf_init(&text, 1 << 16);
    ty_render_kernel(k, alias, base, &text);
    ty_buf_addc(&text, 0);
    if (!strstr(text.data, words) == there)
        fail_msg("%s: expected %s\"%s\" in %s", name, there ? "" : "no ", words, text.data);
    ty_buf_fini(&text);
}

/* Number i of a tensor of the types that these graphs have. */
static inline double case_number(const ty_tensor *t, int64_t i)
{
    switch (t->type.dtype) {
    case TY_BOOL:
        return ((const uint8_t *)t->data)[i];
    case TY_I32:
        return ((const int32_t *)t->data)[i];
    case TY_BF16:
        return (double)ty_bf16_to_f32(((const uint16_t *)t->data)[i]);
    default:
        return (double)((const float *)t->data)[i];
    }
}

/* The graph, which it takes, compiled and run on x; its output is called y. */
static inline ty_program *case_run(const char *name, ty_graph *g, ty_backend backend, int threads, const void *x)
{
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.threads = threads, .backend = backend};
    if (ty_program_of_graph(g, TY_TAPE_EVAL, &opt, &p, &err) < 0 ||
        ty_program_run(p, TY_RUN_EVAL, (const void *[]){x}, &err) < 0)
        fail_msg("%s: %s", name, err.message);
    return p;
}

#endif
