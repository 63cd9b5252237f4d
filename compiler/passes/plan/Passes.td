//===- Passes.td - passes of the plan phase -------------------------------===//
//
// In the order of the pipeline. Each leaves a graph that is right: first without reuse of memory and without edges (schedule order), then with
// reuse, then with edges.
//
#ifndef OGC_PASSES_PLAN_PASSES_TD
#define OGC_PASSES_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def BuildGraph : Pass<"ogc-build-graph", "::mlir::ModuleOp"> {
  let summary = "turn functions of kernel launches into cg graphs, every value at an address of its own";
  let description = [{
    Inputs and outputs get places in their sections, constants become `cg.weight` (equal contents once; what begins a
    larger constant of the same name lies in it), every other value a range of scratch that nothing else uses. Reshapes are views and vanish. A returned value that is no launch result (an input, a constant, a value
    returned twice) is copied by a memcpy node. An input and an output that are one state (`ogc.state`) get one place in the state section, the
    same in all graphs; the new value is copied there after everything else. Launches whose results are all empty are dropped.

    ```mlir
    func.func @main(%x: tensor<8xf32> {onnx.name = "x"}) -> (tensor<8xf32> {onnx.name = "y"}) attributes {ogc.graph_id = "default"} {
      %0 = kern.launch @k0(%x) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    // becomes
    cg.graph @default inputs [#cg.binding<"x", tensor<8xf32>, [""], inputs, 0, 32>] outputs [#cg.binding<"y", …, outputs, 0, 32>] … {
      %0 = cg.kernel @k0 [#cg.slice<inputs, 0, 32, read>, #cg.slice<outputs, 0, 32, write>]
    }
    ```
  }];
  let dependentDialects = ["::ogc::cg::CgDialect"];
}

def SelectGemmProvider : Pass<"ogc-select-gemm-provider", "::mlir::ModuleOp"> {
  let summary = "hand matrix products over to the library where it computes the whole kernel";
  let description = [{
    A kernel of schedule `matmul` becomes `cg.gemm`, in all its launches, when it is nothing but a product of two dense inputs (no panels, no
    views but reshapes) with an epilogue that the library has: a bias along the columns, then relu or gelu (tanh form), or a bias and a
    residual without activation, each of the result's element type; all in f32, or f16 or bf16 with a result of that type or f32. The kernel stays as the
    fallback, its arguments in the order of the node's. Every other product stays a kernel of ours: another activation, a scale, several
    results, an input of two roles. Each node gets a workspace, a scratch buffer of its own that is planned as all others; the library
    takes an algorithm that makes do with it. Must run before edges are derived.

    ```mlir
    kern.kernel @k0 … {                                       // out = relu(a * b + bias)
    ^bb0(%bias: tensor<16xf32>, %a: tensor<1x4x8xf32>, %b: tensor<1x8x16xf32>): …
    cg.kernel @k0 [#cg.slice<weights, 0, …>, #cg.slice<inputs, 0, …>, #cg.slice<weights, 256, …>, #cg.slice<outputs, 0, …>]
    // becomes
    ^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x16xf32>, %bias: tensor<16xf32>): …
    cg.gemm @k0 [#cg.slice<inputs, 0, …>, #cg.slice<weights, 256, …>, #cg.slice<weights, 0, …>, #cg.slice<outputs, 0, …>]
        {activation = "relu", batch = 1, m = 4, n = 16, k = 8, has_bias, element_type = f32, result_type = f32}
    ```
  }];
}

def PlaceConcats : Pass<"ogc-place-concats", "::mlir::ModuleOp"> {
  let summary = "let parts be written where their concatenation lies";
  let description = [{
    A kernel that only concatenates its inputs goes when all of them can be written straight into its result: each is a scratch buffer of its own,
    written by one kernel that goes element by element (no row kernel) and read by pointwise kernels, and the writers are ordered. The writers get
    `ogc.result_extent` (axis, elements of the whole), the readers a slice of a larger argument; their slices are the bytes from the first to the
    last element of the part. Concatenations of concatenations along one axis become one buffer.

    ```mlir
    %0 = cg.kernel @a [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
    %1 = cg.kernel @b [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 256, 64, write>]
    %2 = cg.kernel @concat [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 256, 64, read>, #cg.slice<scratch, 512, 128, write>]
    // becomes, with 16 bytes of each in turn
    %0 = cg.kernel @a_out8 [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 512, 112, write>]
    %1 = cg.kernel @b_in0x8_out8 [#cg.slice<scratch, 512, 112, read>, #cg.slice<scratch, 528, 112, write>]
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def PlaceSlices : Pass<"ogc-place-slices", "::mlir::ModuleOp"> {
  let summary = "let parts be read where the whole lies";
  let description = [{
    Most slices and splits are index maps of the kernels that read them. Where a kernel takes whole buffers only (a sort, a scan, a library), a
    kernel is left that copies the part. It goes when the part is dense and begins at a multiple of 16 bytes, in scratch that one node writes, an
    input or a weight, and nothing else writes to the copy: the readers then read the part itself. A part of a state is copied, since a state
    changes during the run.

    ```mlir
    %1 = cg.kernel @rows2to4 [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 256, 32, write>]
    %2 = cg.kernel @sort [#cg.slice<scratch, 256, 32, read>, #cg.slice<outputs, 0, 32, write>]
    // becomes
    %1 = cg.kernel @sort [#cg.slice<scratch, 32, 32, read>, #cg.slice<outputs, 0, 32, write>]
    ```
  }];
}

def UpdateInPlace : Pass<"ogc-update-in-place", "::mlir::ModuleOp"> {
  let summary = "let results take the bytes of an input that nothing needs any more";
  let description = [{
    A kernel whose only result may overwrite an argument (`inPlaceArguments`: element-wise at equal positions, or the data of a scatter) gets
    the argument's bytes when all other nodes that touch them precede it anyway. The kernel is marked `ogc.in_place`; where other launches need it as
    it was, it gets a variant.

    The new value of a state is computed where the state is, and the copy at the end of the graph goes, when its writer may overwrite the
    old value or does not read it. Readers of the old value that do not depend on the writer are scheduled before it; the others get a copy of the
    old value. Where the writer reads the state in another way the copy at the end stays.

    ```mlir
    %0 = cg.kernel @update [#cg.slice<state, 0, 64, read>, #cg.slice<inputs, 0, 8, read>, #cg.slice<scratch, 0, 64, write>]
    %1 = cg.memcpy #cg.slice<scratch, 0, 64, read> to #cg.slice<state, 0, 64, write>
    // becomes
    %0 = cg.kernel @update [#cg.slice<state, 0, 64, read>, #cg.slice<inputs, 0, 8, read>, #cg.slice<state, 0, 64, readwrite>]
    ```
  }];
}

def PlanArena : Pass<"ogc-plan-arena", "::mlir::ModuleOp"> {
  let summary = "choose which branches run side by side, and let scratch buffers share bytes where that order allows it";
  let description = [{
    Two nodes without a data dependency get an edge in schedule order unless running them side by side hides enough of the shorter
    one's time (`BranchOrder.h`). Then two buffers, unions of overlapping ranges of scratch, share bytes only if all nodes that touch one precede all nodes
    that touch the other along these edges; offsets come from `planArena`. Where the scratch grows past `memory` (less the bytes of state, inputs and
    outputs; without it past 1.5 times what the chain needs and 16 MiB more) fewer branches stay parallel, and the chain is the last resort.
    With `serial` it is the only one. `peak_node` and `peak_buffers` say what determines the bound.

    ```mlir
    %0 = cg.kernel @a [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
    %1 = cg.kernel @b [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 256, 64, write>]     // gets: after %0
    %2 = cg.kernel @b [#cg.slice<scratch, 256, 64, read>, #cg.slice<scratch, 512, 64, write>]   // becomes scratch, 0, … after %1
    ```
  }];
  let options = [Option<"serial", "serial", "bool", "false", "one chain in schedule order">,
                 Option<"memory", "memory", "int64_t", "0", "most bytes for state, inputs, outputs and scratch; 0: no limit">];
}

def DeriveEdges : Pass<"ogc-derive-edges", "::mlir::ModuleOp"> {
  let summary = "derive the edges of each graph from byte-range hazards, reduced transitively";
  let description = [{
    Two nodes that touch a common byte, one of them writing (read after write, write after read, write after write), are ordered as in the
    schedule; so are those with an edge already (`ogc-plan-arena`). An edge implied by others is left out. With `serial` the graph is the chain of the schedule instead, the oracle for the edges.

    ```mlir
    %0 = cg.kernel @a [#cg.slice<scratch, 0, 64, write>]
    %1 = cg.kernel @b [#cg.slice<scratch, 0, 64, read>, #cg.slice<outputs, 0, 64, write>]   // becomes: … after %0
    ```
  }];
  let options = [Option<"serial", "serial", "bool", "false", "one chain in schedule order">];
}

def ClassifyTopologies : Pass<"ogc-classify-topologies", "::mlir::ModuleOp"> {
  let summary = "give graphs with the same kinds of nodes and the same edges one number";
  let description = [{
    An executable graph can be updated to other kernels, launch shapes and addresses, but not to other nodes or edges. The runtime keeps few
    executable graphs and updates one to another graph ID only within a class. Classes are numbered in the order of their first graph.

    ```mlir
    cg.graph @b1 … { %0 = cg.kernel @k0 […]  %1 = cg.kernel @k1 […] after %0 }     // topology = 0
    cg.graph @b8 … { %0 = cg.kernel @k2 […]  %1 = cg.kernel @k3 […] after %0 }     // topology = 0
    cg.graph @b9 … { %0 = cg.kernel @k4 […] }                                      // topology = 1
    ```
  }];
}

def MarkConstantArguments : Pass<"ogc-mark-constant-arguments", "::mlir::ModuleOp"> {
  let summary = "note on each kernel which arguments nothing writes while the graph runs";
  let description = [{
    Weights, and inputs and states that no node of the graph writes, are there before the graph starts: it starts when all work before it in its
    stream has ended. So a kernel may read such an argument before it waits for the kernels ahead of it. The attribute is
    `ogc.constant_args`; an argument that is constant in some launches only is not listed.

    ```mlir
    cg.kernel @k0 [#cg.slice<inputs, 0, 64, read>, #cg.slice<weights, 0, 64, read>, #cg.slice<outputs, 0, 64, write>]
    // kern.kernel @k0 gets ogc.constant_args = array<i64: 0, 1>
    ```
  }];
}

def MarkProgrammaticEdges : Pass<"ogc-mark-programmatic-edges", "::mlir::ModuleOp"> {
  let summary = "let a kernel start before the kernel ahead of it has ended, where both are ours";
  let description = [{
    Every generated kernel executes `griddepcontrol.wait` before its first access to anything but weights, and before it ends. The wait
    returns when all kernels at the other end of the node's programmatic edges have completed and their writes are visible; as these have
    waited too, order stays transitive and the reduced edges suffice. So each edge from kernel to kernel may be programmatic; edges from or to
    copies, fills and library nodes stay full.

    ```mlir
    %0 = cg.kernel @a […]
    %1 = cg.kernel @b […] after %0      // gets edge_kinds = array<i32: 1>
    ```
  }];
}

#endif
