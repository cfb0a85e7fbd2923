/* libnvrtc.c - an NVRTC that can tell its version and nothing else: for looking where libraries are looked for. */
#include "compiler/target/cuda/api.h"

enum { MAJOR = 13, MINOR = 98, REFUSED = 1 };

unsigned nvrtcVersion(int *major, int *minor)
{
    *major = MAJOR;
    *minor = MINOR;
    return 0;
}

const char *nvrtcGetErrorString(unsigned error)
{
    (void)error;
    return "this NVRTC compiles nothing";
}

unsigned nvrtcGetNumSupportedArchs(int *n)
{
    *n = 0;
    return 0;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define REFUSE(name, parameters) \
    unsigned name parameters     \
    {                            \
        return REFUSED;          \
    }
REFUSE(nvrtcGetSupportedArchs, (int *archs))
REFUSE(nvrtcCreateProgram, (nvrtcProgram * program, const char *text, const char *name, int n_headers,
                            const char *const *headers, const char *const *header_names))
REFUSE(nvrtcDestroyProgram, (nvrtcProgram * program))
REFUSE(nvrtcCompileProgram, (nvrtcProgram program, int n_options, const char *const *options))
REFUSE(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t *bytes))
REFUSE(nvrtcGetProgramLog, (nvrtcProgram program, char *log))
REFUSE(nvrtcGetCUBINSize, (nvrtcProgram program, size_t *bytes))
REFUSE(nvrtcGetCUBIN, (nvrtcProgram program, char *cubin))
