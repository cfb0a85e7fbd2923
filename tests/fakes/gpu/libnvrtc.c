/* libnvrtc.c - a stand-in for NVRTC: kernels in the CUDA dialect become a shared object for the host.
 *
 * The words of the dialect (compiler/target/cuda/head.c) are those of fibers instead of CUDA's, and each kernel gets a
 * function that the stand-in driver can call (../driver.c). */
#define _GNU_SOURCE
#include "compiler/target/cuda/api.h"
#include "compiler/target/cuda/render.h"
#include "tests/fakes/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 256, COMMAND_BYTES = 1024, MAX_NAME = 64, SUCCESS = 0, COMPILATION = 6 };

struct _nvrtcProgram {
    char *text;
    char log[4096];
    char *image;
    size_t bytes;
};

unsigned nvrtcVersion(int *major, int *minor)
{
    *major = 13, *minor = 0;
    return SUCCESS;
}

static const int archs[] = {75, 80, 90, 100};

unsigned nvrtcGetNumSupportedArchs(int *n)
{
    *n = sizeof archs / sizeof *archs;
    return SUCCESS;
}

unsigned nvrtcGetSupportedArchs(int *out)
{
    memcpy(out, archs, sizeof archs);
    return SUCCESS;
}

const char *nvrtcGetErrorString(unsigned error)
{
    return error == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "an error of the stand-in";
}

unsigned nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name, int n_headers,
                            const char *const *headers, const char *const *header_names)
{
    (void)name, (void)n_headers, (void)headers, (void)header_names;
    *program = calloc(1, sizeof **program);
    (*program)->text = strdup(text);
    return SUCCESS;
}

unsigned nvrtcDestroyProgram(nvrtcProgram *program)
{
    free((*program)->text);
    free((*program)->image);
    free(*program);
    *program = NULL;
    return SUCCESS;
}

/* For the kernel whose name and parameters begin at `at`: name_run(parameters, threads, blocks) and name_n. */
static void write_runner(FILE *f, const char *name, const char *parameters)
{
    int n = 1;
    for (const char *p = parameters; *p != ')'; p++)
        n += *p == ',';
    const char *end = strstr(parameters, "\n}\n");
    size_t length = end ? (size_t)(end - parameters) : strlen(parameters);
    int barriers = memmem(parameters, length, "BARRIER", 7) || memmem(parameters, length, "SHUFFLE", 7);
    fprintf(f, "static void %s_body(void *all)\n{\n void **p = all;\n %s(", name, name);
    for (int i = 0; i < n; i++)
        fprintf(f, "%s*(void **)p[%d]", i ? ", " : "", i);
    fprintf(
        f,
        ");\n}\nvoid %s_run(void **p, int threads, long blocks)\n{\n grid_run(%s_body, p, threads, blocks, %d);\n}\n"
        "const int %s_n = %d;\n",
        name, name, barriers, name, n);
}

static int write_source(const char *path, const char *text)
{
    static const char mark[] = "#define TY_NAME ";
    char name[MAX_NAME];
    size_t head = strlen(ty_cuda_head);
    if (strncmp(text, ty_cuda_head, head) != 0)
        return -1;
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    fprintf(f, "%s%s\n", ty_grid_head, text + head);
    for (const char *p = text; (p = strstr(p, mark)); p++) {
        const char *open = strchr(p, '(');                            /* of TY_KERNEL */
        const char *parameters = open ? strchr(open + 1, '(') : NULL; /* of the kernel */
        if (parameters && sscanf(p + sizeof mark - 1, "%63s", name) == 1)
            write_runner(f, name, parameters + 1);
    }
    return fclose(f);
}

/* What a kernel is asked by, where none runs. */
static int name_kernels(nvrtcProgram program)
{
    static const char mark[] = "#define TY_NAME ";
    char name[MAX_NAME], *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    for (const char *p = program->text; f && (p = strstr(p, mark)); p++) {
        const char *open = strchr(p, '(');
        const char *at = open ? strchr(open + 1, '(') : NULL;
        int n = 1;
        for (; at && *at != ')'; at++)
            n += *at == ',';
        if (at && sscanf(p + sizeof mark - 1, "%63s", name) == 1)
            fprintf(f, "%s %d\n", name, n);
    }
    if (!f || fclose(f) != 0)
        return -1;
    program->bytes = sizeof(fake_image) + bytes + 1;
    program->image = calloc(1, program->bytes);
    memcpy(program->image, &(fake_image){FAKE_NAMES, bytes}, sizeof(fake_image));
    memcpy(program->image + sizeof(fake_image), text, bytes);
    free(text);
    return 0;
}

static int read_image(nvrtcProgram program, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return -1;
    fseek(f, 0, SEEK_END);
    size_t bytes = (size_t)ftell(f);
    rewind(f);
    program->bytes = sizeof(fake_image) + bytes;
    program->image = calloc(1, program->bytes);
    memcpy(program->image, &(fake_image){FAKE_MAGIC, bytes}, sizeof(fake_image));
    size_t got = fread(program->image + sizeof(fake_image), 1, bytes, f);
    fclose(f);
    return got == bytes ? 0 : -1;
}

unsigned nvrtcCompileProgram(nvrtcProgram program, int n_options, const char *const *options)
{
    char folder[] = "/tmp/ty-fake-nvrtc-XXXXXX", source[PATH_BYTES], object[PATH_BYTES], command[COMMAND_BYTES];
    const char *run = getenv("TY_FAKE_RUN"), *cc = getenv("CC");
    bool groups = false;
    for (int i = 0; i < n_options; i++)
        groups = groups || strcmp(options[i], "--gpu-architecture=sm_90a") == 0;
    if (run && strcmp(run, "none") == 0)
        return name_kernels(program) == 0 ? SUCCESS : COMPILATION;
    if (!mkdtemp(folder))
        return COMPILATION;
    snprintf(source, sizeof source, "%s/k.c", folder);
    snprintf(object, sizeof object, "%s/k.so", folder);
    snprintf(
        command, sizeof command,
        "%s -std=gnu17 -DGRID_ALIGNED -O1 -march=native -ffp-contract=fast -fno-math-errno -fwrapv -w -fPIC -shared "
        "-lm -DTY_GROUP=%d -o %s %s",
        cc && *cc ? cc : "cc", groups, object, source);
    int rc = write_source(source, program->text);
    rc = rc == 0 && system(command) == 0 ? read_image(program, object) : -1;
    if (rc < 0)
        snprintf(program->log, sizeof program->log, "the host's compiler failed on %s", source);
    unlink(object);
    if (!getenv("TY_FAKE_KEEP"))
        unlink(source), rmdir(folder);
    return rc == 0 ? SUCCESS : COMPILATION;
}

unsigned nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes)
{
    *bytes = strlen(program->log) + 1;
    return SUCCESS;
}

unsigned nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    memcpy(log, program->log, strlen(program->log) + 1);
    return SUCCESS;
}

unsigned nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes)
{
    *bytes = program->bytes;
    return SUCCESS;
}

unsigned nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    memcpy(cubin, program->image, program->bytes);
    return SUCCESS;
}
