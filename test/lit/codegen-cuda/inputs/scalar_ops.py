"""Prints a module with one kernel a type, each a chain of all scalar operations of arith and math on it."""

FLOATS = {"f32": 32, "f64": 64, "f16": 16, "bf16": 16}
INTS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
CONSTANTS = {  # NaN and -infinity by their bits
    "f32": ("0x7FC00000", "0xFF800000"), "f64": ("0x7FF8000000000000", "0xFFF0000000000000"),
    "f16": ("0x7E00", "0xFC00"), "bf16": ("0x7FC0", "0xFF80")}
FLOAT_BINARY = "addf subf mulf divf remf maximumf minimumf maxnumf minnumf".split()
FLOAT_COMPARE = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()
MATH_UNARY = """absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2 round roundeven
                rsqrt sin sinh sqrt tan tanh trunc""".split()
INT_BINARY = """addi subi muli andi ori xori minsi maxsi minui maxui divsi divui remsi remui floordivsi ceildivsi ceildivui shli shrsi
                shrui""".split()
INT_COMPARE = "eq ne slt sle sgt sge ult ule ugt uge".split()


class Chain:
    """Operations on a running value of one type."""

    def __init__(self, type):
        self.type, self.value, self.lines = type, "%a", []

    def define(self, text):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        return name

    def step(self, op, *others, suffix=None):
        self.value = self.define(f"{op} {', '.join((self.value,) + others)} : {suffix or self.type}")

    def select(self, condition, other):
        self.value = self.define(f"arith.select {condition}, {self.value}, {other} : {self.type}")

    def there_and_back(self, there, back, other):
        middle = self.define(f"{there} {self.value} : {self.type} to {other}")
        self.value = self.define(f"{back} {middle} : {other} to {self.type}")

    def print(self, name):
        tensor = f"tensor<64x{self.type}>"
        print(f"kern.kernel @{name} attributes {{schedule = #kern.schedule<pointwise>}} {{\n^bb0(%x: {tensor}, %y: {tensor}):")
        print(f"  %empty = tensor.empty() : {tensor}")
        print(f"  %0 = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = [\"parallel\"]}}")
        print(f"      ins(%x, %y : {tensor}, {tensor}) outs(%empty : {tensor}) {{")
        print(f"  ^bb1(%a: {self.type}, %b: {self.type}, %o: {self.type}):")
        print("\n".join(self.lines))
        print(f"    linalg.yield {self.value} : {self.type}\n  }} -> {tensor}\n  kern.yield %0 : {tensor}\n}} loc(\"{name} (Test)\")\n")


def float_chain(type, width):
    c = Chain(type)
    for op in FLOAT_BINARY:
        c.step(f"arith.{op}", "%b")
    for value in ("1.5", "-3.25", "-0.0") + CONSTANTS[type]:
        c.step("arith.addf", c.define(f"arith.constant {value} : {type}"))
    for op in MATH_UNARY:
        c.step(f"math.{op}")
    for op in ("powf", "atan2", "copysign"):
        c.step(f"math.{op}", "%b")
    c.step("math.fma", "%b", "%a")
    c.step("arith.negf")
    c.value = c.define(f"math.clampf {c.value} to [%a, %b] : {type}")
    for predicate in FLOAT_COMPARE:
        c.select(c.define(f"arith.cmpf {predicate}, {c.value}, %b : {type}"), "%a")
    for op in ("isnan", "isinf", "isfinite", "isnormal"):
        c.select(c.define(f"math.{op} {c.value} : {type}"), "%b")
    for integer in INTS:
        c.there_and_back("arith.fptosi", "arith.sitofp", integer)
        c.there_and_back("arith.fptoui", "arith.uitofp", integer)
    c.step("math.fpowi", c.define(f"arith.fptosi {c.value} : {type} to i32"), suffix=f"{type}, i32")
    c.there_and_back("arith.bitcast", "arith.bitcast", f"i{width}")
    for other, otherWidth in FLOATS.items():
        if otherWidth > width:
            c.there_and_back("arith.extf", "arith.truncf", other)
        elif otherWidth < width:
            c.there_and_back("arith.truncf", "arith.extf", other)
    return c


def int_chain(type, width):
    c = Chain(type)
    for op in INT_BINARY[:10] if width == 1 else INT_BINARY:
        c.step(f"arith.{op}", "%b")
    smallest = "true" if width == 1 else f"{-(1 << (width - 1))} : {type}"
    c.step("arith.addi", c.define(f"arith.constant {smallest}"))
    if width > 1:
        for op in ("absi", "ctpop", "ctlz", "cttz"):
            c.step(f"math.{op}")
        c.step("math.ipowi", "%b")
        c.there_and_back("arith.index_cast", "arith.index_cast", "index")
        c.there_and_back("arith.index_castui", "arith.index_castui", "index")
    for predicate in INT_COMPARE:
        c.select(c.define(f"arith.cmpi {predicate}, {c.value}, %b : {type}"), "%a")
    for other, otherWidth in INTS.items():
        if otherWidth > width:
            c.there_and_back("arith.extsi", "arith.trunci", other)
            c.there_and_back("arith.extui", "arith.trunci", other)
        elif otherWidth < width:
            c.there_and_back("arith.trunci", "arith.extsi", other)
    return c


print("#id = affine_map<(d0) -> (d0)>\n")
for type, width in FLOATS.items():
    float_chain(type, width).print(f"floats_{type}")
for type, width in INTS.items():
    int_chain(type, width).print(f"ints_{type}")
