/* onednn.c - opens oneDNN. See onednn.h. */
#include "compiler/target/cpu/onednn.h"

#include "base/dl.h"

#include <omp.h>
#include <stddef.h>

#define ONEDNN_SERIAL_FLOPS 2e6 /* some ten microseconds of one core */

static ty_onednn onednn;
static bool onednn_ready;

int ty_onednn_status(dnnl_status_t status, const char *what, ty_error *err)
{
    if (status == dnnl_success)
        return 0;
    ty_code code = status == dnnl_out_of_memory   ? TY_E_LIMIT
                   : status == dnnl_unimplemented ? TY_E_UNSUPPORTED
                                                  : TY_E_LIBRARY;
    return ty_error_set(err, code, "oneDNN: %s failed with status %d%s", what, (int)status,
                        code == TY_E_UNSUPPORTED ? " (not implemented for these shapes)" : "");
}

int ty_onednn_get(const ty_onednn **out, ty_error *err)
{
    static const char *const names[] = {"libdnnl.so.2", NULL};
    static const ty_dl_symbol symbols[] = {
#define X(fn) {.name = "dnnl_" #fn, .offset = offsetof(ty_onednn, fn)},
        ONEDNN_FUNCTIONS(X)
#undef X
    };
    void *handle;
    *out = &onednn;
    if (onednn_ready)
        return 0;
    if (ty_dl_open(names, symbols, sizeof symbols / sizeof *symbols, &onednn, &handle, err) < 0) {
        ty_error_wrap(err, "products and convolutions need oneDNN 2");
        return ty_error_help(err, "install the package libdnnl2");
    }
    if (ty_onednn_status(onednn.engine_create(&onednn.engine, dnnl_cpu, 0), "creating the engine", err) < 0 ||
        ty_onednn_status(onednn.stream_create(&onednn.stream, onednn.engine, dnnl_stream_default_flags),
                         "creating a stream", err) < 0)
        return -1;
    onednn_ready = true;
    return 0;
}

int ty_onednn_threads(const ty_library_shape *shape, double flops)
{
    return flops < ONEDNN_SERIAL_FLOPS ? 1 : shape->threads;
}

int ty_onednn_use_threads(int threads)
{
    int before = omp_get_max_threads();
    if (before != threads)
        omp_set_num_threads(threads);
    return before;
}
