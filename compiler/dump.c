/* dump.c - see dump.h. */
#include "compiler/dump.h"

#include "base/file.h"
#include "compiler/ir/text.h"

#include <stdio.h>

static void dump_text(const char *dir, const char *name, const ty_buf *text)
{
    char path[512];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path && ty_file_mkdirs(dir, 0755, NULL) == 0)
        ty_file_write(path, text->data, text->len, 0644, NULL);
}

void ty_dump_graph(const ty_compile_options *opt, const char *name, const ty_graph *g)
{
    if (!opt->dump_dir)
        return;
    ty_buf text;
    ty_buf_init(&text, 1u << 28);
    if (ty_graph_print(g, &text, true) == 0)
        dump_text(opt->dump_dir, name, &text);
    ty_buf_fini(&text);
}

void ty_dump_kernels(const ty_compile_options *opt, const char *name, const ty_plan *plan)
{
    if (!opt->dump_dir)
        return;
    ty_buf text;
    ty_buf_init(&text, 1u << 28);
    for (int at = 0; at < plan->n_order; at++) {
        const ty_unit *u = &plan->f->unit[plan->order[at]];
        ty_buf_addf(&text, "# %d: %s\n", at, ty_graph_origin_of(plan->f->g, u->node));
        if (u->kind == TY_UNIT_KERNEL)
            ty_kernel_print(u->kernel, &text);
        else
            ty_buf_addf(&text, "%s of %%%u\n", u->kind == TY_UNIT_LIBRARY ? "library call" : "assembly", u->node);
    }
    dump_text(opt->dump_dir, name, &text);
    ty_buf_fini(&text);
}

void ty_dump_phases(const ty_compile_options *opt, const ty_compile_phases *phases)
{
    if (!opt || !opt->dump_dir)
        return;
    ty_buf text;
    ty_buf_init(&text, 1u << 16);
    for (int i = 0; i < phases->n; i++)
        ty_buf_addf(&text, "%10.2f ms  %s\n", phases->ms[i], phases->name[i]);
    dump_text(opt->dump_dir, "compile.txt", &text);
    ty_buf_fini(&text);
}
