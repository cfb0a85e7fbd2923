/* tape_run.c - runs tapes on the CPU. See cpu.h. */
#include "compiler/target/cpu/inside.h"

#include "base/clock.h"

void ty_cpu_point_inputs(ty_cpu *cpu, int plan, const void *const *inputs)
{
    const cpu_tape *tape = &cpu->tape[plan];
    for (int i = 0; i < tape->n_patches; i++)
        *tape->patch[i].at = (char *)(uintptr_t)inputs[tape->patch[i].input] + tape->patch[i].offset;
}

static int run_step(const ty_cpu *cpu, const ty_cpu_step *step, ty_error *err)
{
    return ty_cpu_step_run(step, cpu->scratch, cpu->opt.exchange, err);
}

/* ---- late steps ---- */

bool ty_cpu_has_late(const ty_cpu *cpu, int plan)
{
    return cpu->late == plan;
}

/* Something is left. */
static bool run_is_late(const ty_cpu *cpu)
{
    return cpu->late >= 0 && cpu->late_next < cpu->tape[cpu->late].n_steps;
}

/* Those that an earlier run has left, up to `end`. */
static int run_late(ty_cpu *cpu, int end, ty_error *err)
{
    for (; cpu->late_next < end; cpu->late_next++)
        if (run_step(cpu, &cpu->tape[cpu->late].step[cpu->late_next], err) < 0)
            return -1;
    return 0;
}

int ty_cpu_catch_up(ty_cpu *cpu, ty_error *err)
{
    return cpu->late < 0 ? 0 : run_late(cpu, cpu->tape[cpu->late].n_steps, err);
}

int ty_cpu_start(ty_cpu *cpu, int plan, const void *const *inputs, ty_error *err)
{
    const cpu_tape *tape = &cpu->tape[plan];
    if (!run_is_late(cpu) && plan != cpu->late)
        return ty_cpu_run(cpu, plan, inputs, NULL, err);
    ty_cpu_point_inputs(cpu, plan, inputs);
    for (int i = 0; i < tape->n_main; i++)
        if (run_late(cpu, cpu->tape[cpu->late].n_main + tape->need[i], err) < 0 ||
            run_step(cpu, &tape->step[i], err) < 0)
            return -1;
    if (ty_cpu_catch_up(cpu, err) < 0)
        return -1;
    if (plan == cpu->late)
        cpu->late_next = tape->n_main;
    return 0;
}

/* ---- all of a tape ---- */

/* A half of a sum alone would leave half a result to look at: both are carried out where the first one begins. */
int ty_cpu_run_call(ty_cpu *cpu, int plan, int call, ty_error *err)
{
    const ty_exchange *x = cpu->opt.exchange;
    const cpu_tape *tape = &cpu->tape[plan];
    const ty_cpu_step *step = &tape->step[call];
    if (step->kind == TY_CPU_WAIT) /* it was waited for where it began */
        return 0;
    if (step->kind != TY_CPU_BEGIN)
        return run_step(cpu, step, err);
    for (int i = 0; i < call; i++)
        if (tape->step[i].kind == TY_CPU_BEGIN && tape->step[i].info.unit == step->info.unit)
            return 0;
    for (int i = call; i < tape->n_main; i++) {
        const ty_cpu_step *half = &tape->step[i];
        if (half->kind == TY_CPU_BEGIN && half->info.unit == step->info.unit &&
            (run_step(cpu, half, err) < 0 || x->wait(x->ctx, half->exchange, err) < 0))
            return -1;
    }
    return 0;
}

int ty_cpu_run(ty_cpu *cpu, int plan, const void *const *inputs, int64_t *call_ns, ty_error *err)
{
    const cpu_tape *tape = &cpu->tape[plan];
    if (ty_cpu_catch_up(cpu, err) < 0)
        return -1;
    ty_cpu_point_inputs(cpu, plan, inputs);
    int64_t before = call_ns ? ty_clock_ns() : 0;
    for (int i = 0; i < tape->n_steps; i++) {
        if (run_step(cpu, &tape->step[i], err) < 0)
            return -1;
        if (call_ns) {
            int64_t now = ty_clock_ns();
            call_ns[i] = now - before;
            before = now;
        }
    }
    return 0;
}

/* ---- what there is ---- */

int ty_cpu_n_calls(const ty_cpu *cpu, int plan)
{
    return cpu->tape[plan].n_steps;
}

void ty_cpu_call(const ty_cpu *cpu, int plan, int call, ty_call_info *out)
{
    *out = cpu->tape[plan].step[call].info;
}

const void *ty_cpu_value(const ty_cpu *cpu, int plan, ty_val v, const void *const *inputs)
{
    return ty_cpu_address(cpu, cpu->plan[plan], ty_plan_place(cpu->plan[plan], v), inputs);
}

const void *ty_cpu_output(const ty_cpu *cpu, int plan, int output, const void *const *inputs)
{
    const cpu_tape *tape = &cpu->tape[plan];
    if (tape->result)
        return tape->result[output];
    return ty_cpu_value(cpu, plan, ty_graph_output(cpu->plan[plan]->f->g, output)->val, inputs);
}
