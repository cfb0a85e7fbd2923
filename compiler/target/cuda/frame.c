/* frame.c - see frame.h. */
#include "compiler/target/cuda/frame.h"

/* ---- what goes up and what comes down ---- */

static void frame_find_outputs(const ty_plan *plan, ty_arena *a, ty_cuda_frame *f)
{
    const ty_graph *g = plan->f->g;
    int *output = TY_NEW_ARRAY(a, int, ty_graph_n_outputs(g) + 1);
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        if (ty_graph_output(g, i)->tapes & plan->f->tape)
            output[f->n_outputs++] = i;
    f->output = output;
}

static ty_place frame_output_place(const ty_cuda_frame *f, const ty_plan *plan, int number)
{
    return ty_plan_place(plan, ty_graph_output(plan->f->g, f->output[number])->val);
}

static void frame_note(bool *reads, const ty_place *at)
{
    if (at->kind == TY_PLACE_INPUT)
        reads[at->index] = true;
}

/* By calls, or as an output. */
static void frame_find_inputs(const ty_plan *plan, const ty_cuda_tape *tape, ty_arena *a, ty_cuda_frame *f)
{
    bool *reads = TY_NEW_ARRAY(a, bool, ty_graph_n_inputs(plan->f->g) + 1);
    for (int i = 0; i < tape->n_calls; i++)
        for (int k = 0; k < tape->call[i].n_at; k++)
            frame_note(reads, &tape->call[i].at[k]);
    for (int i = 0; i < f->n_outputs; i++) {
        ty_place at = frame_output_place(f, plan, i);
        frame_note(reads, &at);
    }
    f->reads = reads;
}

static void frame_measure(const ty_graph *g, const ty_cuda_block *inputs, ty_cuda_frame *f)
{
    f->first = inputs->bytes;
    for (int i = 0; i < inputs->n; i++) {
        size_t bytes = ty_type_bytes(&ty_graph_input(g, i)->type);
        if (!f->reads[i] || bytes == 0)
            continue;
        f->first = inputs->offset[i] < f->first ? inputs->offset[i] : f->first;
        f->end = inputs->offset[i] + bytes;
    }
}

/* ---- the list ---- */

typedef struct frame_list {
    ty_cuda_ask *ask;
    int n;
} frame_list;

static void frame_add(frame_list *l, ty_cuda_ask_kind kind, ty_cuda_stream stream, int output)
{
    l->ask[l->n++] = (ty_cuda_ask){.kind = kind, .stream = stream, .output = output};
}

static void frame_add_sync(frame_list *l, ty_cuda_stream stream, bool awaits, ty_cuda_event event)
{
    l->ask[l->n++] = (ty_cuda_ask){
        .kind = TY_CUDA_ASK_SYNC, .stream = stream, .sync = {.stream = stream, .awaits = awaits, .event = event}};
}

static void frame_add_batch(frame_list *l)
{
    frame_add(l, TY_CUDA_ASK_UP, TY_CUDA_STREAM_BATCHES, 0);
    frame_add_sync(l, TY_CUDA_STREAM_BATCHES, false, TY_CUDA_EVENT_ARRIVED);
    frame_add_sync(l, TY_CUDA_STREAM_MAIN, true, TY_CUDA_EVENT_ARRIVED);
    frame_add(l, TY_CUDA_ASK_TAKE, TY_CUDA_STREAM_MAIN, 0);
    frame_add_sync(l, TY_CUDA_STREAM_MAIN, false, TY_CUDA_EVENT_TAKEN);
}

void ty_cuda_frame_of(const ty_plan *plan, const ty_cuda_tape *tape, const ty_cuda_memory *memory, ty_arena *a,
                      ty_cuda_frame *out)
{
    enum { BATCH = 5, GRAPH = 1, DONE = 1 };
    *out = (ty_cuda_frame){.n_outputs = 0};
    frame_find_outputs(plan, a, out);
    frame_find_inputs(plan, tape, a, out);
    frame_measure(plan->f->g, &memory->block[TY_CUDA_INPUTS], out);
    frame_list l = {.ask = TY_NEW_ARRAY(a, ty_cuda_ask, BATCH + GRAPH + out->n_outputs + DONE)};
    if (out->first < out->end)
        frame_add_batch(&l);
    out->graph = l.n;
    frame_add(&l, TY_CUDA_ASK_GRAPH, TY_CUDA_STREAM_MAIN, 0);
    for (int i = 0; i < out->n_outputs; i++)
        frame_add(&l, TY_CUDA_ASK_DOWN, TY_CUDA_STREAM_MAIN, i);
    frame_add_sync(&l, TY_CUDA_STREAM_MAIN, false, TY_CUDA_EVENT_DONE);
    out->ask = l.ask;
    out->n_asks = l.n;
}

/* ---- text ---- */

static void print_inputs(const ty_cuda_frame *f, const ty_graph *g, ty_buf *out)
{
    const char *before = "";
    for (int i = 0; i < ty_graph_n_inputs(g); i++)
        if (f->reads[i]) {
            ty_buf_addf(out, "%sinput %d", before, i);
            before = ", ";
        }
    ty_buf_adds(out, "\n");
}

static void print_down(const ty_cuda_frame *f, const ty_cuda_tape *tape, const ty_plan *plan, int number, ty_buf *out)
{
    const ty_output *output = ty_graph_output(plan->f->g, f->output[number]);
    ty_place at = frame_output_place(f, plan, number);
    ty_buf_addf(out, "down %zu: ", ty_type_bytes(ty_graph_type(plan->f->g, output->val)));
    ty_cuda_tape_print_place(tape, &at, out);
    ty_buf_addf(out, " -> %s\n", output->name);
}

static void print_ask(const ty_cuda_frame *f, const ty_cuda_tape *tape, const ty_plan *plan, const ty_cuda_ask *ask,
                      ty_buf *out)
{
    if (ask->kind == TY_CUDA_ASK_SYNC) {
        ty_cuda_sync_print(&ask->sync, out);
        ty_buf_adds(out, "\n");
        return;
    }
    ty_buf_addf(out, "%s ", ty_cuda_stream_text(ask->stream));
    if (ask->kind == TY_CUDA_ASK_DOWN) {
        print_down(f, tape, plan, ask->output, out);
    } else if (ask->kind == TY_CUDA_ASK_GRAPH) {
        ty_buf_adds(out, "graph of\n");
        ty_cuda_tape_print(tape, plan, out);
        ty_buf_addf(out, "%s end of the graph\n", ty_cuda_stream_text(ask->stream));
    } else {
        ty_buf_addf(out, ask->kind == TY_CUDA_ASK_UP ? "up %zu: " : "copy %zu: batch -> ", f->end - f->first);
        print_inputs(f, plan->f->g, out);
    }
}

void ty_cuda_frame_print(const ty_cuda_frame *f, const ty_cuda_tape *tape, const ty_plan *plan, ty_buf *out)
{
    for (int i = 0; i < f->n_asks; i++)
        print_ask(f, tape, plan, &f->ask[i], out);
}
