"""bench/kernels: a made-up table of calls, and what the arithmetic of kernels costs."""
from cases import script

CALLS = """mlp: 5 calls, 100.000 ms (kernels 60.000, library 40.000, copies 0.000); copying memory: 10.0 GB/s
       ms  share  read MB write MB    GB/s of copy thr  what
  40.0000  40.0%  100.000  100.000    5.00     50%   2  library dot onednn sgemm NN 1x2x3x4: a (MatMul #1)
  20.0000  20.0%   60.000   60.000    6.00     60%   2  kernel ty_k_aa rows: b/x: y (Gelu #2)
  20.0000  20.0%   30.000   30.000    3.00     30%   2  kernel ty_k_aa rows: c (Gelu #3)
  10.0000  10.0%   50.000   45.000    9.50     95%   2  kernel ty_k_bb columns: update
   9.0000   9.0%   20.000   20.000    4.44     44%   2  kernel ty_k_cc rows: d
   0.9000   0.9%    0.300    0.300    0.67      7%   2  kernel ty_k_dd rows: small, in a cache
   0.1000   0.1%    5.000    5.000  100.00   1000%   2  kernel ty_k_ee rows: short
counts ty_k_aa: exp.f32 1500000 add.f64 500000 div.f32 1000000
counts ty_k_aa: exp.f32 500000 add.f64 500000 div.f32 1000000
counts ty_k_bb: add.f32 1000000
counts ty_k_cc: add.f32 1000000 gather.f32 7
counts ty_k_dd: add.f32 10
counts ty_k_ee: add.f32 10
flop: products 900, all 1000
"""
CEILINGS = {"fma": 2e9, "div": 2e8, "sqrt": 1e8}
COSTS = {"exp": (20, 0, 0), "add": (1, 0, 0), "div": (0, 1, 0), "gather": None}


class Options:
    share, least, below = 0.5, 4, 80


def test_a_table_is_judged():
    kernels = script("kernels")
    told = kernels.read_calls(CALLS)
    assert told["step_ms"] == 100 and told["copy_gb_per_s"] == 10 and told["products_ms"] == 40
    assert told["product_flop"] / told["flop"] == 0.9
    gelu, update, slow = kernels.judged(told, CEILINGS, Options, COSTS.get)  # neither ty_k_dd nor ty_k_ee
    assert (gelu["name"], gelu["calls"], gelu["layer"], gelu["gb_per_s"]) == ("ty_k_aa", 2, "b/x: y (Gelu #2)", 4.5)
    # both calls together: 2e6 exp of 20 and 1e6 additions of doubles, twice 21e6 instructions, and 2e6 divisions
    assert abs(gelu["arithmetic_ms"] - 2 * (10.5 + 5)) < 1e-9 and abs(gelu["of_arithmetic"] - 31 / 40) < 1e-9
    assert (gelu["bound"], update["bound"], slow["bound"]) == ("nothing", "memory", "nothing")
    Options.below, below = 70, Options.below
    assert kernels.judged(told, CEILINGS, Options, COSTS.get)[0]["bound"] == "arithmetic"
    Options.below = below


def test_a_table_is_printed():
    kernels = script("kernels")
    told = {**kernels.read_calls(CALLS), "bare": 1.034, "alone": 1.01, "bare_conv": None, "alone_conv": None}
    rows = kernels.judged(told, CEILINGS, Options, COSTS.get)
    text = kernels.table([{"work": "mlp", "threads": 2, **told, "kernels": rows}])
    assert "| mlp | 2 | `ty_k_bb` columns | update | 1 | 10.0% | 9.5 | 95% | 5% | memory |\n" in text
    assert "| `ty_k_cc` rows | d | 1 | 9.0% | 4.4 | 44% | 6% | **nothing: 44% of its roof** |\n" in text
    assert "| mlp | 2 | 100 | 10.0 | 90.0% | 40.0% | +3.4% | +1.0% |  |  |\n" in text
    assert "dot: step / bare | alone / bare | convolutions: step / bare | alone / bare |\n" + "| --- " * 10 + "|\n" in text


def test_runs_make_medians():
    kernels = script("kernels")
    runs = [{**kernels.read_calls(CALLS.replace("10.0000 ", f"{ms}.0000 ").replace("100.000 ms", f"{10 * ms}.000 ms")),
             **dict.fromkeys(kernels.BARE)} for ms in (10, 30, 20)]
    told = kernels.middle(runs)
    assert told["step_ms"] == 200 and told["kernels"]["ty_k_bb"]["ms"] == 20 and told["bare"] is None


LOOP = """loop:
	vmovups	(%rdi), %zmm9
.L2:
	movq	%rdx, %rax
	vmovups	(%rsi,%rax), %zmm0
	vcmpps	$1, %zmm1, %zmm0, %k1
	vfmadd132ps	%zmm1, %zmm2, %zmm0
	vdivps	%zmm1, %zmm0, %zmm0{%k1}
	vsqrtps	%zmm0, %zmm0
	vmovups	%zmm0, (%rdi,%rax)
	cmpq	%rdx, %rcx
	jne	.L2
	vzeroupper
	ret
.L3:
	vaddss	%xmm0, %xmm1, %xmm2
	jne	.L3
"""


def test_instructions_of_a_loop_are_counted():
    arithmetic = script("kernels").arithmetic
    assert arithmetic.counted(LOOP) == (2, 1, 1)


def test_functions_of_the_prelude_are_vectors():
    """An exp has its polynomial of degree 7, not much more; tanh has exp, a polynomial and one division."""
    arithmetic = script("kernels").arithmetic
    assert 8 <= arithmetic.cost("exp")[0] <= 60 and arithmetic.cost("exp")[1:] == (0, 0)
    assert arithmetic.cost("tanh")[0] > arithmetic.cost("exp")[0] and arithmetic.cost("tanh")[1] == 1
    assert arithmetic.cost("add") == (1, 0, 0) and arithmetic.cost("gather") is None


def test_kernels_without_arithmetic_are_told():
    kernels = script("kernels")
    told = kernels.read_calls(CALLS.replace("add.f32 1000000 gather.f32 7", ""))
    rows = kernels.judged(told, CEILINGS, Options, COSTS.get)
    assert rows[2]["of_arithmetic"] == 0
    kernels.arithmetic.cost = COSTS.get
    text = kernels.proof([{"work": "mlp", "threads": 2, "ceilings": CEILINGS, "kernels": rows}])
    assert "- mlp ty_k_cc: 0.000 of 9.000 ms for no arithmetic\n" in text
    assert "- mlp ty_k_aa: 31.000 of 40.000 ms for exp.f32 2000000, div.f32 2000000, add.f64 1000000\n" in text


def test_what_was_replayed_is_read():
    kernels = script("kernels")
    text = ("product  times\nNN 1x2x3x4  1\n"
            "all: step 2.4 ms, bare 2.5 ms, step / bare 0.970; alone 2.6 ms, alone / bare 1.040; 0.5 GFLOP\n"
            "conv  1\nconvolutions: step 22.0 ms, bare 11.0 ms, step / bare 2.000; alone 12.1 ms, alone / bare 1.100; "
            "4.1 GFLOP\n")
    found = {"bare": 0.97, "alone": 1.04, "bare_conv": 2.0, "alone_conv": 1.1}
    assert kernels.bare_ratios(text) == found
    assert kernels.bare_ratios(text.split("conv")[0]) == {**found, "bare_conv": None, "alone_conv": None}
