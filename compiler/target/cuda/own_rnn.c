/* own_rnn.c - the steps of a recurrent layer and their gradient, on a GPU. ops/recurrence.h has the formulas.
 *
 * Rows of a batch do not know of one another, so a block takes a row through all steps, with the state in shared memory
 * and a barrier where a GPU-wide one would be needed otherwise. The weights are read once a step and row, from the
 * cache: forward a warp eight rows of R, whose lanes meet in a butterfly; backward a thread a column. Sums have a fixed
 * order.
 *
 * Weights of 16 bits are read as they are and multiplied as float32; what they multiply is rounded to their type.
 *
 * Gates may lie where their inputs were (and gradients where the gates were): a thread reads its elements of a step
 * before it writes them, and none reads those of another.
 */
#include "compiler/kernel/ctype.h"
#include "compiler/ops/recurrence.h"
#include "compiler/target/cuda/own.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RNN_THREADS = 256, RNN_TEXT_BYTES = 1 << 16, RNN_SHARED_FLOATS = 11 << 10 };

typedef struct own_rnn {
    ty_recurrence r;
    int n_in;
} own_rnn;

static int rnn_read(const ty_cuda_own *o, const ty_type *series, const ty_type *weight, own_rnn *out, ty_error *err)
{
    if (series->dtype != TY_F32)
        return ty_error_set(err, TY_E_UNSUPPORTED, "recurrent steps on a GPU: expected f32, found %s",
                            ty_dtype_text((ty_dtype)series->dtype));
    out->r = ty_recurrence_of(ty_graph_attr(o->g, o->node), series, weight);
    out->n_in = (int)ty_graph_node(o->g, o->node)->n_in;
    if (out->r.width + 3 * out->r.hidden > RNN_SHARED_FLOATS)
        return ty_error_set(err, TY_E_UNSUPPORTED,
                            "recurrent steps on a GPU: a row of %" PRId64 " gates does not fit into shared memory",
                            out->r.width);
    return 0;
}

/* ---- text ---- */

static void rnn_names(const char *type, const char *names, ty_buf *text)
{
    for (const char *p = names; *p; p += strspn(p, " ")) {
        int n = (int)strcspn(p, " ");
        ty_buf_addf(text, ", %s *%.*s", type, n, p);
        p += n;
    }
}

/* Names of what is read beside the weights, and of what is written. LD: a weight; ROUND: what it multiplies. */
static void rnn_parameters(const own_rnn *x, const char *in, const char *out, ty_buf *text)
{
    ty_buf_addf(text, "(const %s *weight", ty_ctypes[x->r.weight].memory);
    rnn_names("const float", in, text);
    rnn_names("float", out, text);
    ty_buf_adds(text, ")\n{\n");
    ty_cuda_own_words(text, x->r.weight);
    ty_buf_adds(text, "#undef LOGISTIC\n#define LOGISTIC(v) (1.0f / (1.0f + ty_exp_f32(-(v))))\n"
                      "#undef ROUND\n#define ROUND(v) LD(ST(v))\n");
}

/* Constants, then the loop over rows; `b` is the row. Where the k-th step finds its time and its states. */
static void rnn_open(const own_rnn *x, ty_buf *text)
{
    const ty_recurrence *r = &x->r;
    static const char *const name[TY_RNN_MAX_GATES + 1][TY_RNN_MAX_GATES] = {
        [TY_RNN_VANILLA] = {"A"}, [TY_RNN_GRU] = {"Z", "R", "N"}, [TY_RNN_LSTM] = {"I", "F", "G", "O"}};
    ty_buf_addf(text, " const int T = %" PRId64 ", B = %" PRId64 ", H = %" PRId64 ", W = %" PRId64 ";\n", r->steps,
                r->batch, r->hidden, r->width);
    for (int k = 0; k < r->gates; k++)
        ty_buf_addf(text, " const int %s = %" PRId64 ";\n", name[r->gates][k], r->block[k] * r->hidden);
    ty_buf_addf(text,
                " TY_SHARED float s[%" PRId64 "], h[%" PRId64 "], q[%" PRId64 "], c[%" PRId64 "];\n"
                " for (int b = (int)TY_BLOCK; b < B; b += (int)TY_BLOCKS) {\n",
                r->width, r->hidden, r->hidden, r->hidden);
}

/* Inside the loop over steps `k`. */
static void rnn_times(const own_rnn *x, ty_buf *text)
{
    ty_buf_adds(text, x->r.backward ? "   const long t = T - 1 - k, before = T - k, after = T - k - 1;\n"
                                    : "   const long t = k, before = k, after = k + 1;\n");
    ty_buf_adds(text, "   const long row = (t * B + b) * W, flat = (t * B + b) * H;\n"
                      "   const long old = (before * B + b) * H, next = (after * B + b) * H;\n"
                      "   (void)flat, (void)old, (void)next, (void)row;\n");
}

/* for (u ...) { body } over the hidden units, then a barrier. */
static void rnn_units(ty_buf *text, const char *body)
{
    ty_buf_adds(text, "   for (int u = TY_THREAD; u < H; u += 256) {\n");
    ty_buf_adds(text, body);
    ty_buf_adds(text, "   }\n   TY_BARRIER();\n");
}

/* s[j] = R[j] . ROUND(v) for rows lo <= j < hi, eight at a time in a warp, so that as many reads are under way. Lanes
 * meet in a butterfly in which each half keeps half of the rows, until a lane has one. */
static void rnn_products(const own_rnn *x, ty_buf *text, const char *lo, const char *hi, const char *v)
{
    ty_buf_addf(text,
                "   for (int j = %s + TY_THREAD / 32 * 8; j < %s; j += 64) {\n"
                "    const int lane = TY_THREAD %% 32, mine = j + lane / 16 * 4 + lane / 8 %% 2 * 2 + lane / 4 %% 2;\n"
                "    const %s *r[8];\n"
                "    float sum[8];\n"
                "#pragma unroll\n"
                "    for (int n = 0; n < 8; n++) sum[n] = 0, r[n] = &weight[(long)(j + n < %s ? j + n : j) * H];\n"
                "#pragma unroll 4\n"
                "    for (int i = lane; i < H; i += 32) {\n"
                "     const float x = ROUND(%s[i]);\n"
                "#pragma unroll\n"
                "     for (int n = 0; n < 8; n++) sum[n] += LD(r[n][i]) * x;\n"
                "    }\n"
                "#pragma unroll\n"
                "    for (int m = 16, n = 4; n > 0; m /= 2, n /= 2)\n"
                "#pragma unroll\n"
                "     for (int k = 0; k < 4; k++)\n"
                "      if (k < n) {\n"
                "       const float other = lane & m ? sum[k] : sum[k + n];\n"
                "       sum[k] = (lane & m ? sum[k + n] : sum[k]) + TY_SHUFFLE_F(other, m);\n"
                "      }\n"
                "    for (int m = 2; m > 0; m /= 2) sum[0] += TY_SHUFFLE_F(sum[0], m);\n"
                "    if (lane %% 4 == 0 && mine < %s) s[mine] = sum[0];\n"
                "   }\n"
                "   TY_BARRIER();\n",
                lo, hi, ty_ctypes[x->r.weight].memory, hi, v, hi);
}

/* sum = that over rows lo <= j < hi of s[j] R[j][i], where s is rounded already; use: what becomes of it. */
static void rnn_through(ty_buf *text, const char *lo, const char *hi, const char *use)
{
    ty_buf_addf(text,
                "   for (int i = TY_THREAD; i < H; i += 256) {\n"
                "    float sum = 0;\n"
                "#pragma unroll 16\n"
                "    for (int j = %s; j < %s; j++) sum += s[j] * LD(weight[(long)j * H + i]);\n"
                "    %s\n"
                "   }\n"
                "   TY_BARRIER();\n",
                lo, hi, use);
}

static void rnn_launch(const ty_cuda_own *o, const own_rnn *x, ty_buf *text, const int *which, int n)
{
    const ty_cuda_launch launch = {.form = "own",
                                   .threads = RNN_THREADS,
                                   .blocks = x->r.batch > 0 ? x->r.batch : 1,
                                   .has_barriers = true,
                                   .room = TY_CUDA_TWO};
    ty_buf_adds(text, " }\n}\n");
    o->launch(o->ctx, text, launch, which, n);
    ty_buf_fini(text);
}

/* ---- steps ---- */

static void steps_lstm(const own_rnn *x, ty_buf *text)
{
    rnn_products(x, text, "0", "W", "h");
    rnn_units(text, "    const float i = LOGISTIC(xw[row + I + u] + bias[I + u] + s[I + u]);\n"
                    "    const float f = LOGISTIC(xw[row + F + u] + bias[F + u] + s[F + u]);\n"
                    "    const float g = ty_tanh_f32(xw[row + G + u] + bias[G + u] + s[G + u]);\n"
                    "    const float o = LOGISTIC(xw[row + O + u] + bias[O + u] + s[O + u]);\n"
                    "    gates[row + I + u] = i; gates[row + F + u] = f;\n"
                    "    gates[row + G + u] = g; gates[row + O + u] = o;\n"
                    "    c[u] = f * c[u] + i * g;\n"
                    "    kept[next + u] = c[u];\n"
                    "    h[u] = o * ty_tanh_f32(c[u]);\n"
                    "    states[next + u] = h[u];\n");
}

static void steps_vanilla(const own_rnn *x, ty_buf *text)
{
    rnn_products(x, text, "0", "W", "h");
    ty_buf_adds(text,
                x->r.relu ? "#define ACT(v) ((v) > 0 || (v) != (v) ? (v) : 0)\n" : "#define ACT(v) ty_tanh_f32(v)\n");
    rnn_units(text, "    const float v = xw[row + A + u] + bias[A + u] + s[A + u];\n"
                    "    h[u] = ACT(v);\n"
                    "    gates[row + A + u] = h[u];\n"
                    "    states[next + u] = h[u];\n");
    ty_buf_adds(text, "#undef ACT\n");
}

static const char steps_gru_zr[] = "    const float z = LOGISTIC(xw[row + Z + u] + bias[Z + u] + s[Z + u]);\n"
                                   "    const float r = LOGISTIC(xw[row + R + u] + bias[R + u] + s[R + u]);\n";

static void steps_gru(const own_rnn *x, ty_buf *text)
{
    static const char finish[] = "    gates[row + Z + u] = z; gates[row + R + u] = r; gates[row + N + u] = n;\n"
                                 "    h[u] = (1 - z) * n + z * h[u];\n"
                                 "    states[next + u] = h[u];\n";
    if (x->r.reset_after) {
        char body[1024];
        rnn_products(x, text, "0", "W", "h");
        snprintf(body, sizeof body,
                 "%s    const float m = bias[W + u] + s[N + u];\n"
                 "    kept[flat + u] = m;\n"
                 "    const float n = ty_tanh_f32(xw[row + N + u] + bias[N + u] + r * m);\n"
                 "%s",
                 steps_gru_zr, finish);
        rnn_units(text, body);
        return;
    }
    rnn_products(x, text, "Z", "Z + H", "h");
    rnn_products(x, text, "R", "R + H", "h");
    rnn_units(text, "    const float r = LOGISTIC(xw[row + R + u] + bias[R + u] + s[R + u]);\n"
                    "    q[u] = r * h[u];\n"
                    "    kept[flat + u] = q[u];\n");
    rnn_products(x, text, "N", "N + H", "q");
    char body[1024];
    snprintf(body, sizeof body, "%s    const float n = ty_tanh_f32(xw[row + N + u] + bias[N + u] + s[N + u]);\n%s",
             steps_gru_zr, finish);
    rnn_units(text, body);
}

typedef void rnn_kind_fn(const own_rnn *x, ty_buf *text);

int ty_cuda_own_rnn_steps(const ty_cuda_own *o, ty_error *err)
{
    static rnn_kind_fn *const kinds[] = {
        [TY_RNN_VANILLA] = steps_vanilla, [TY_RNN_GRU] = steps_gru, [TY_RNN_LSTM] = steps_lstm};
    own_rnn x;
    ty_buf text;
    if (rnn_read(o, ty_cuda_own_type(o, TY_STEPS_XW), ty_cuda_own_type(o, TY_STEPS_WEIGHT), &x, err) < 0)
        return -1;
    bool lstm = x.r.gates == TY_RNN_LSTM;
    ty_buf_init(&text, RNN_TEXT_BYTES);
    rnn_parameters(&x, "xw bias h0 c0", "states gates kept", &text);
    rnn_open(&x, &text);
    ty_buf_addf(&text,
                "  const long first = (%d * (long)B + b) * H;\n"
                "  for (int u = TY_THREAD; u < H; u += 256) {\n"
                "   h[u] = h0[(long)b * H + u];\n"
                "   states[first + u] = h[u];\n",
                x.r.backward ? (int)x.r.steps : 0);
    ty_buf_adds(&text, lstm ? "   c[u] = c0[(long)b * H + u];\n   kept[first + u] = c[u];\n"
                            : "   (void)c0, (void)c, (void)q;\n");
    ty_buf_adds(&text, "  }\n  TY_BARRIER();\n  for (int k = 0; k < T; k++) {\n");
    rnn_times(&x, &text);
    kinds[x.r.gates](&x, &text);
    ty_buf_adds(&text, "  }\n");
    /* without a cell something has to stand in its place */
    const int which[] = {TY_STEPS_WEIGHT,
                         TY_STEPS_XW,
                         TY_STEPS_BIAS,
                         TY_STEPS_H0,
                         lstm ? TY_STEPS_C0 : TY_STEPS_H0,
                         x.n_in + TY_STEPS_H,
                         x.n_in + TY_STEPS_GATES,
                         x.n_in + TY_STEPS_KEPT};
    rnn_launch(o, &x, &text, which, 8);
    return 0;
}

/* ---- the gradient: dh in h, dc in c, the gradient of the gates' products in s ---- */

static void rgrad_lstm(const own_rnn *x, ty_buf *text)
{
    (void)x;
    rnn_units(text, "    const float i = gates[row + I + u], f = gates[row + F + u];\n"
                    "    const float g = gates[row + G + u], o = gates[row + O + u];\n"
                    "    const float d = h[u] + dy[flat + u], y = ty_tanh_f32(kept[next + u]);\n"
                    "    const float dc = c[u] + d * o * (1 - y * y);\n"
                    "    GRAD(O, d * y * o * (1 - o));\n"
                    "    GRAD(I, dc * g * i * (1 - i));\n"
                    "    GRAD(F, dc * kept[old + u] * f * (1 - f));\n"
                    "    GRAD(G, dc * i * (1 - g * g));\n"
                    "    c[u] = dc * f;\n");
    rnn_through(text, "0", "W", "h[i] = sum;");
}

static void rgrad_vanilla(const own_rnn *x, ty_buf *text)
{
    ty_buf_adds(text, x->r.relu ? "#define SLOPE(y) ((y) > 0 ? 1.0f : 0.0f)\n" : "#define SLOPE(y) (1 - (y) * (y))\n");
    rnn_units(text, "    const float y = states[next + u];\n"
                    "    GRAD(A, (h[u] + dy[flat + u]) * SLOPE(y));\n");
    ty_buf_adds(text, "#undef SLOPE\n");
    rnn_through(text, "0", "W", "h[i] = sum;");
}

/* s has what goes back through R; with the reset before the product, n's part first gives the gradient of r h. */
static void rgrad_gru(const own_rnn *x, ty_buf *text)
{
    static const char gates[] =
        "    const float z = gates[row + Z + u], r = gates[row + R + u], n = gates[row + N + u];\n"
        "    const float d = h[u] + dy[flat + u];\n"
        "    const float dn = d * (1 - z) * (1 - n * n);\n"
        "    GRAD(Z, d * (states[old + u] - n) * z * (1 - z));\n"
        "    h[u] = d * z;\n";
    char body[1024];
    if (x->r.reset_after) {
        snprintf(body, sizeof body,
                 "%s    GRAD(R, dn * kept[flat + u] * r * (1 - r));\n"
                 "    GRAD(N, dn * r);\n"
                 "    dpre[row + N + u] = dn;\n",
                 gates);
        rnn_units(text, body);
        rnn_through(text, "0", "W", "h[i] += sum;");
        return;
    }
    snprintf(body, sizeof body, "%s    GRAD(N, dn);\n    q[u] = r;\n", gates);
    rnn_units(text, body);
    rnn_through(text, "N", "N + H",
                "h[i] += sum * q[i];\n"
                "    const int u = i;\n"
                "    GRAD(R, sum * states[old + i] * q[i] * (1 - q[i]));");
    rnn_through(text, "Z", "Z + H", "h[i] += sum;");
    rnn_through(text, "R", "R + H", "h[i] += sum;");
}

int ty_cuda_own_rnn_grad(const ty_cuda_own *o, ty_error *err)
{
    static rnn_kind_fn *const kinds[] = {
        [TY_RNN_VANILLA] = rgrad_vanilla, [TY_RNN_GRU] = rgrad_gru, [TY_RNN_LSTM] = rgrad_lstm};
    own_rnn x;
    ty_buf text;
    if (rnn_read(o, ty_cuda_own_type(o, TY_RGRAD_DY), ty_cuda_own_type(o, TY_RGRAD_WEIGHT), &x, err) < 0)
        return -1;
    bool plain = x.r.gates == TY_RNN_VANILLA, cell = x.n_in > TY_RGRAD_DC;
    ty_buf_init(&text, RNN_TEXT_BYTES);
    rnn_parameters(&x, "dy states gates kept dc", "dpre drec dh0 dc0", &text);
    ty_buf_adds(&text, "#undef GRAD\n"
                       "#define GRAD(gate, v) s[gate + u] = ROUND(dpre[row + gate + u] = drec[row + gate + u] = v)\n");
    rnn_open(&x, &text);
    ty_buf_addf(&text,
                "  (void)gates, (void)kept, (void)dc, (void)q;\n"
                "  for (int u = TY_THREAD; u < H; u += 256) {\n"
                "   h[u] = 0;\n"
                "   c[u] = %s;\n"
                "  }\n"
                "  TY_BARRIER();\n"
                "  for (int k = T - 1; k >= 0; k--) {\n",
                cell ? "dc[(long)b * H + u]" : "0");
    rnn_times(&x, &text);
    kinds[x.r.gates](&x, &text);
    ty_buf_adds(&text, "  }\n"
                       "  for (int u = TY_THREAD; u < H; u += 256) {\n"
                       "   dh0[(long)b * H + u] = h[u];\n"
                       "   dc0[(long)b * H + u] = c[u];\n"
                       "  }\n"
                       "  TY_BARRIER();\n");
    /* what a kind has not is not read: the first operand stands in its place */
    const int which[] = {TY_RGRAD_WEIGHT,
                         TY_RGRAD_DY,
                         TY_RGRAD_H,
                         plain ? TY_RGRAD_DY : TY_RGRAD_GATES,
                         plain ? TY_RGRAD_DY : TY_RGRAD_KEPT,
                         cell ? TY_RGRAD_DC : TY_RGRAD_DY,
                         x.n_in + TY_RGRAD_DPRE,
                         x.n_in + TY_RGRAD_DREC,
                         x.n_in + TY_RGRAD_DH0,
                         x.n_in + TY_RGRAD_DC0};
    rnn_launch(o, &x, &text, which, 10);
    return 0;
}
