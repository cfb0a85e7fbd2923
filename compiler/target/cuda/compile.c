/* compile.c - runs NVRTC and reads what the assembler says. See compile.h. */
#include "compiler/target/cuda/compile.h"

#include "compiler/target/cuda/libraries.h"
#include "compiler/target/cuda/render.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_SHOWN = 400 };
#define COMPILE_OPTIONS "--ptxas-options=-v", "--disable-warnings"

/* ---- what ptxas prints with -v ----
 *
 *     ptxas info    : Compiling entry function 'k' for 'sm_90'
 *     ptxas info    : Function properties for k
 *     ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *     ptxas info    : Used 24 registers, used 1 barriers, 64 bytes smem
 *
 * Between the last two, functions that the kernel calls (slow cases of a division) have properties of their own, which
 * count for it.
 */

static int log_count(const char *log, const char *word)
{
    int n = 0;
    for (const char *p = log; (p = strstr(p, word)); p++)
        n++;
    return n;
}

/* The number that stands before a word; 0 if the word is missing. */
static int log_number_before(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? atoi(at) : 0;
}

static void log_line(const char *line, size_t n, ty_arena *a, ty_cuda_kernel_facts **kernel, int *n_kernels)
{
    static const char entry[] = "Compiling entry function '";
    int stack, stores, loads, registers;
    const char *text = ty_arena_strndup(a, line, n), *at = strstr(text, entry);
    ty_cuda_kernel_facts *last = *n_kernels ? &(*kernel)[*n_kernels - 1] : NULL;
    if (at) {
        at += sizeof entry - 1;
        (*kernel)[(*n_kernels)++] = (ty_cuda_kernel_facts){.name = ty_arena_strndup(a, at, strcspn(at, "'"))};
    } else if (last && (at = strchr(text, '.')) &&
               sscanf(at, ". %d bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stack, &stores,
                      &loads) == 3) {
        last->stack_bytes += stack;
        last->spill_bytes += stores + loads;
    } else if (last && (at = strstr(text, "Used ")) && sscanf(at, "Used %d registers", &registers) == 1) {
        last->registers = registers;
        last->shared_bytes = log_number_before(at, " bytes smem");
    }
}

static void log_read(const char *log, ty_arena *a, ty_cuda_object *out)
{
    ty_cuda_kernel_facts *kernel =
        TY_NEW_ARRAY(a, ty_cuda_kernel_facts, log_count(log, "Compiling entry function") + 1);
    out->n_kernels = 0;
    for (const char *p = log; *p;) {
        size_t n = strcspn(p, "\n");
        log_line(p, n, a, &kernel, &out->n_kernels);
        p += n + (p[n] == '\n');
    }
    out->kernel = kernel;
}

/* ---- compiling ---- */

static int compile_status(const ty_nvrtc *lib, unsigned status, const char *what, ty_error *err)
{
    if (status == 0)
        return 0;
    return ty_error_set(err, TY_E_COMPILER, "NVRTC: %s failed: %s", what, lib->nvrtcGetErrorString(status));
}

static const char *compile_log(const ty_nvrtc *lib, nvrtcProgram program, ty_arena *a)
{
    size_t bytes = 0;
    if (lib->nvrtcGetProgramLogSize(program, &bytes) != 0)
        return "";
    char *log = ty_arena_alloc(a, bytes + 1);
    return lib->nvrtcGetProgramLog(program, log) == 0 ? log : "";
}

static int compile_program(const ty_nvrtc *lib, nvrtcProgram program, int capability, ty_arena *a, ty_cuda_object *out,
                           ty_error *err)
{
    const char *options[] = {COMPILE_OPTIONS, ty_arena_printf(a, "--gpu-architecture=sm_%d%s", capability,
                                                              ty_cuda_groups(capability) ? "a" : "")};
    unsigned status = lib->nvrtcCompileProgram(program, sizeof options / sizeof *options, options);
    const char *log = compile_log(lib, program, a);
    if (status != 0)
        return ty_error_set(err, TY_E_COMPILER, "NVRTC cannot compile a kernel for sm_%d (%s): %.*s", capability,
                            lib->nvrtcGetErrorString(status), LOG_SHOWN, log);
    if (compile_status(lib, lib->nvrtcGetCUBINSize(program, &out->bytes), "asking for the size of the code", err) < 0)
        return -1;
    char *cubin = ty_arena_alloc(a, out->bytes);
    out->cubin = cubin;
    log_read(log, a, out);
    return compile_status(lib, lib->nvrtcGetCUBIN(program, cubin), "fetching the code", err);
}

const char *ty_cuda_compiler(ty_arena *a)
{
    static const char *const options[] = {COMPILE_OPTIONS};
    const ty_nvrtc *lib;
    int major = 0, minor = 0;
    if (ty_nvrtc_get(&lib, NULL) < 0 || lib->nvrtcVersion(&major, &minor) != 0)
        return NULL;
    const char *text = ty_arena_printf(a, "NVRTC %d.%d", major, minor);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        text = ty_arena_printf(a, "%s %s", text, options[i]);
    return text;
}

int ty_cuda_compile(const char *text, int capability, ty_arena *a, ty_cuda_object *out, ty_error *err)
{
    const ty_nvrtc *lib;
    nvrtcProgram program;
    *out = (ty_cuda_object){0};
    if (ty_nvrtc_get(&lib, err) < 0)
        return -1;
    if (compile_status(lib, lib->nvrtcCreateProgram(&program, text, "kernels.cu", 0, NULL, NULL), "taking the text",
                       err) < 0)
        return -1;
    int rc = compile_program(lib, program, capability, a, out, err);
    lib->nvrtcDestroyProgram(&program);
    return rc;
}
