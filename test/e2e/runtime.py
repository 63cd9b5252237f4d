"""The C interface of the runtime (runtime_lib/include/ogc/runtime.h) through ctypes, as far as the tests need it."""
import ctypes as C

import harness

PATH = harness.BIN.parent / "lib/libogc_runtime.so"
HOST, DEVICE = 0, 1
SIZE = C.c_size_t


class RuntimeFailure(Exception):
    """A call that failed: its code and the reason."""

    def __init__(self, code, message):
        super().__init__(f"code {code}: {message}")
        self.code, self.message = code, message


class EngineOptions(C.Structure):
    _fields_ = [("weights_file", C.c_char_p), ("random_weights", C.c_int), ("seed", C.c_uint64), ("threads", C.c_uint), ("exec_pool", SIZE)]


class Library:
    def __init__(self):
        self.c = C.CDLL(str(PATH))
        self.c.ogc_last_error.restype = self.c.ogc_bundle_graph_id.restype = C.c_char_p

    def __call__(self, function, *arguments):
        code = getattr(self.c, function)(*arguments)
        if code:
            raise RuntimeFailure(code, self.c.ogc_last_error().decode())


class Bundle:
    def __init__(self, library, path):
        self.call, self.handle = library, C.c_void_p()
        library("ogc_bundle_open", str(path).encode(), C.byref(self.handle))

    def find(self, graph):
        index = SIZE()
        self.call("ogc_bundle_find_graph", self.handle, graph.encode(), C.byref(index))
        return index.value

    def close(self):
        self.call.c.ogc_bundle_close(self.handle)


class Engine:
    def __init__(self, bundle, device="cpu", threads=1, pool=0):
        self.call, self.bundle, self.handle = bundle.call, bundle, C.c_void_p()
        self.call("ogc_engine_create", bundle.handle, device.encode(), C.byref(EngineOptions(threads=threads, exec_pool=pool)), C.byref(self.handle))

    def refit(self, bundle):
        self.call("ogc_engine_refit", self.handle, bundle.handle, None)

    def close(self):
        self.call.c.ogc_engine_release(self.handle)


class Context:
    def __init__(self, engine):
        self.call, self.engine, self.handle = engine.call, engine, C.c_void_p()
        self.call("ogc_context_create", engine.handle, None, C.byref(self.handle))

    def bind(self, graph, inputs, outputs, memory=HOST):
        """Arrays in the order of the graph's inputs and outputs; they must stay alive."""
        for function, arrays in (("ogc_bind_input", inputs), ("ogc_bind_output", outputs)):
            for index, array in enumerate(arrays):
                self.call(function, self.handle, SIZE(graph), SIZE(index), C.c_void_p(array.ctypes.data), SIZE(array.nbytes), memory)

    def run(self, graph):
        self.call("ogc_run", self.handle, SIZE(graph))

    def in_place(self, graph, index=0):
        return bool(self.call.c.ogc_input_in_place(self.handle, SIZE(graph), SIZE(index)))

    def close(self):
        self.call.c.ogc_context_release(self.handle)
