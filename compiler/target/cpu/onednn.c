/* onednn.c - opens oneDNN. See onednn.h. */
#include "compiler/target/cpu/onednn.h"

#include "base/crew.h"
#include "base/dl.h"
#include "compiler/target/cpu/native.h"

#include <cpuid.h>
#include <omp.h>
#include <pthread.h>
#include <stddef.h>

#define ONEDNN_SERIAL_FLOPS   2e6        /* some ten microseconds of one core */
#define ONEDNN_CPUID_AMX_BF16 (1u << 22) /* leaf 7, edx */

static ty_onednn onednn;
static bool onednn_ready;
static pthread_mutex_t onednn_lock = PTHREAD_MUTEX_INITIALIZER; /* of both */

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

static int onednn_open(ty_error *err)
{
    static const char *const names[] = {"libdnnl.so.2", NULL};
    static const ty_dl_symbol symbols[] = {
#define X(fn) {.name = "dnnl_" #fn, .offset = offsetof(ty_onednn, fn)},
        ONEDNN_FUNCTIONS(X)
#undef X
    };
    void *handle;
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

int ty_onednn_get(const ty_onednn **out, ty_error *err)
{
    *out = &onednn;
    pthread_mutex_lock(&onednn_lock);
    int rc = onednn_open(err);
    pthread_mutex_unlock(&onednn_lock);
    return rc;
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

void ty_library_warm_up(void)
{
    static const float one[8 * 8] = {1};
    float product[8 * 8];
    const ty_onednn *lib;
    if (ty_onednn_get(&lib, NULL) < 0)
        return;
    int before = ty_onednn_use_threads(1);
    lib->sgemm('N', 'N', 8, 8, 8, 1.0f, one, 8, one, 8, 0.0f, product, 8);
    ty_onednn_use_threads(before);
}

/* ---- ahead of the graph ---- */

static struct {
    pthread_mutex_t lock;
    ty_crew *crew; /* at it */
    bool begun;    /* once in a process */
} ahead = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void ahead_run(const ty_job *job)
{
    (void)job;
    ty_library_warm_up();
}

/* With AVX-512 all products of float32 are oneDNN's (native_dot.c). */
void ty_library_expect(void)
{
    const ty_job job = {.run = ahead_run};
    if (!ty_onednn_is_wide())
        return;
    pthread_mutex_lock(&ahead.lock);
    if (!ahead.begun)
        ahead.crew = ty_crew_start(&job, 1, 1);
    ahead.begun |= ahead.crew != NULL;
    pthread_mutex_unlock(&ahead.lock);
}

void ty_library_await(void)
{
    pthread_mutex_lock(&ahead.lock);
    ty_crew_end(ahead.crew);
    ahead.crew = NULL;
    pthread_mutex_unlock(&ahead.lock);
}

static bool ahead_has_begun(void)
{
    pthread_mutex_lock(&ahead.lock);
    bool begun = ahead.begun;
    pthread_mutex_unlock(&ahead.lock);
    return begun;
}

/* At the first product that oneDNN 2.6's sgemm multiplies in place (native_dot.c says which) it writes the code of all
 * sixteen variants at once. */
bool ty_library_is_slow_to_start(const ty_graph *g)
{
    if (ahead_has_begun())
        return false;
    for (uint32_t node = 0; node < ty_graph_n_nodes(g); node++) {
        ty_op op = ty_graph_op(g, node);
        const ty_type *t = op == TY_OP_DOT ? ty_graph_type(g, ty_val_make(node, 0)) : NULL;
        if (t && t->dtype == TY_F32 && ty_type_elems(t) > 0 && !ty_native_dot_pays(ty_graph_attr(g, node), t) &&
            1.0 / (double)t->dim[t->rank - 2] + 1.0 / (double)t->dim[t->rank - 1] >= TY_ONEDNN_IN_PLACE)
            return true;
    }
    return false;
}

bool ty_onednn_is_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool ty_onednn_has_amx(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & ONEDNN_CPUID_AMX_BF16);
}

bool ty_onednn_bf16_pays(void)
{
    return __builtin_cpu_supports("avx512bf16") && (ty_onednn_has_amx() || __builtin_cpu_is("amd"));
}
