/* apart.c - see apart.h. */
#include "compiler/apart.h"

#include <string.h>

static const struct {
    ty_code code;
    const char *pass;
} apart_rows[] = {{TY_E_NO_EPILOGUE, TY_PASS_EPILOGUE}, {TY_E_NO_FUSION, TY_PASS_ATTACH}};

bool ty_compile_apart(ty_code why, const char **names, ty_compile_options *opt)
{
    const char *pass = NULL;
    for (size_t i = 0; i < sizeof apart_rows / sizeof *apart_rows; i++)
        if (apart_rows[i].code == why)
            pass = apart_rows[i].pass;
    if (!pass || opt->n_skip_passes >= TY_APART_MOST)
        return false;
    for (int i = 0; i < opt->n_skip_passes; i++) {
        names[i] = opt->skip_passes[i];
        if (strcmp(pass, names[i]) == 0)
            return false;
    }
    names[opt->n_skip_passes++] = pass;
    opt->skip_passes = names;
    return true;
}
