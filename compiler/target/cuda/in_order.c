/* in_order.c - see in_order.h. */
#include "compiler/target/cuda/in_order.h"

#include "compiler/kernel/ctype.h"
#include "compiler/target/cuda/own.h"
#include "compiler/target/pending.h"

#include <inttypes.h>

/* Bytes of a part: a multiple of these, that all begin where memory is read at best; and fewer are not worth the two
 * further messages of a sum in parts. */
enum { ORDER_ALIGN_BYTES = 64, ORDER_LEAST_BYTES = 1024 };

static ty_dtype order_dtype(const ty_graph *g, uint32_t node)
{
    return (ty_dtype)ty_graph_type(g, ty_graph_in(g, node, 0))->dtype;
}

bool ty_in_order_of(const ty_graph *g, uint32_t node, ty_in_order *out)
{
    ty_exchange_kind kind = ty_pending_kind(g, node);
    ty_dtype dtype = order_dtype(g, node);
    int64_t elems = ty_type_elems(ty_graph_type(g, ty_graph_in(g, node, 0)));
    int64_t replicas = ty_graph_attr(g, node)->replicas, bytes = (int64_t)ty_dtype_bytes(dtype);
    int64_t part = elems / replicas, align = ORDER_ALIGN_BYTES / bytes;
    if (kind == TY_EXCHANGE_GATHER || !ty_dtype_is_float(dtype) || elems == 0)
        return false;
    if (kind == TY_EXCHANGE_SUM)
        part = part * bytes < ORDER_LEAST_BYTES ? 0 : part / align * align;
    int64_t rest = elems - replicas * part;
    *out = (ty_in_order){part, rest, (size_t)(replicas * (part + rest) * bytes)};
    return true;
}

ty_cuda_launch ty_in_order_render(const ty_graph *g, uint32_t node, const ty_in_order *o, ty_buf *text)
{
    const ty_ctype *type = &ty_ctypes[order_dtype(g, node)];
    ty_cuda_launch launch = ty_cuda_own_flat(o->part + o->rest);
    ty_buf_addf(text, "(const %s *__restrict__ room, %s *__restrict__ own, %s *__restrict__ rest)\n{\n", type->memory,
                type->memory, type->memory);
    ty_cuda_own_words(text, order_dtype(g, node));
    ty_buf_addf(text,
                " const long N = %" PRId64 "l, PART = %" PRId64 "l, REST = %" PRId64 "l;\n"
                " for (long i = TY_BLOCK * %d + TY_THREAD; i < PART + REST; i += TY_BLOCKS * %d) {\n"
                "  const long first = i < PART ? i : N * PART + i - PART, step = i < PART ? PART : REST;\n"
                "  %s a = LD(room[first]);\n"
                "  for (long r = 1; r < N; r++)\n"
                "   a = a + LD(room[first + r * step]);\n"
                "  if (i < PART)\n"
                "   own[i] = ST(a);\n"
                "  else\n"
                "   rest[i - PART] = ST(a);\n"
                " }\n}\n",
                ty_graph_attr(g, node)->replicas, o->part, o->rest, launch.threads, launch.threads, type->value);
    return launch;
}
