"""A small good trace as text that a test may damage, and traces built from a few words."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from triosim.trace import Operator, Tensor, Trace, read_trace

# The good base of ODD_CSV.md: 9 operators, 510 us.
GOOD_TRACE = """\
OperatorID,OperatorName,Operator_input,Operator_output,Operator_cudatime,Operator_cudatimenooverlap,InputSize,OutputSize,gpuid,stage,tpflag
1,aten::conv2d,[1; 2; 3],[4],100,100,[1536; 108; 4],[2048],0,forward,1
2,aten::relu_,[4],[4],20,20,[2048],[2048],0,forward,0
3,aten::linear,[4; 5; 6],[7],50,50,[2048; 2560; 10],[80],0,forward,1
4,aten::cross_entropy_loss,[7; 8],[9],10,10,[80; 8],[1],0,forward,0
5,autograd::engine::evaluate_function: NllLossBackward0,[10; 7; 8],[11],5,5,[1; 80; 8],[80],0,backward,0
6,autograd::engine::evaluate_function: AddmmBackward0,[11; 5],[12; 13],80,80,[80; 2560],[2048; 2560],0,backward,1
7,autograd::engine::evaluate_function: ReluBackward0,[12; 4],[14],25,25,[2048; 2048],[2048],0,backward,0
8,autograd::engine::evaluate_function: ConvolutionBackward0,[14; 1; 2],[15],190,190,[2048; 1536; 108],[108],0,backward,1
9,aten::_foreach_add_,[2; 5; 15; 13],[],30,30,[108; 2560; 108; 2560],[],0,optimizer,0
"""  # noqa: E501 - one record a line
GOOD_TENSOR = """\
Index,TensorID,TensorShape,TensorNumElement,TensorEachByte,TensorType,TensorStorgeid,gpuid
0,1,"[8, 3, 8, 8]",1536,4,input,101,0
1,2,"[4, 3, 3, 3]",108,4,weight,102,0
2,3,[4],4,4,bias=None,103,0
3,4,"[8, 4, 8, 8]",2048,4,output,104,0
4,5,"[10, 256]",2560,4,weight,105,0
5,6,[10],10,4,bias=None,106,0
6,7,"[8, 10]",80,4,output,107,0
7,8,[8],8,8,target,108,0
8,9,[],1,4,output,109,0
9,10,[],1,4,grad_output,110,0
10,11,"[8, 10]",80,4,output,111,0
11,12,"[8, 256]",2048,4,output,112,0
12,13,"[10, 256]",2560,4,output,113,0
13,14,"[8, 4, 8, 8]",2048,4,output,114,0
14,15,"[4, 3, 3, 3]",108,4,output,115,0
"""


class Table:
    """A CSV file as rows; `put` counts lines from 1, the header, as an editor does."""

    def __init__(self, text: str) -> None:
        self.rows = list(csv.reader(io.StringIO(text)))

    def column(self, name: str) -> int:
        return self.rows[0].index(name)

    def put(self, line: int, column: str, value: str) -> None:
        self.rows[line - 1][self.column(column)] = value

    def drop(self, column: str) -> None:
        place = self.column(column)
        for row in self.rows:
            del row[place]

    def text(self) -> str:
        file = io.StringIO(newline="")
        csv.writer(file, lineterminator="\n").writerows(self.rows)
        return file.getvalue()


class Folder:
    """The good trace in a folder; change `tables`, then `read`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tables = {"trace.csv": Table(GOOD_TRACE), "tensor.csv": Table(GOOD_TENSOR)}

    @property
    def trace(self) -> Table:
        return self.tables["trace.csv"]

    @property
    def tensor(self) -> Table:
        return self.tables["tensor.csv"]

    def write(self) -> Path:
        for name, table in self.tables.items():
            self.overwrite(name, table.text())
        return self.path

    def overwrite(self, name: str, content: str | bytes) -> Path:
        data = content.encode() if isinstance(content, str) else content
        (self.path / name).write_bytes(data)
        return self.path

    def read(self) -> Trace:
        return read_trace(self.write())


@pytest.fixture
def good(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def in_words() -> Callable[..., Trace]:
    """Build a trace from (phase, name, input ids, output ids).

    Tensor i has one element of 4 bytes in storage 100 + i unless `storage` or `numel` says
    otherwise.
    """

    def build(
        *operators: tuple[str, str, Sequence[int], Sequence[int]],
        storage: Mapping[int, int] | None = None,
        numel: Mapping[int, int] | None = None,
    ) -> Trace:
        def tensors(ids: Sequence[int]) -> tuple[Tensor, ...]:
            return tuple(
                Tensor(
                    id=i,
                    storage=(storage or {}).get(i, 100 + i),
                    shape=((numel or {}).get(i, 1),),
                    numel=(numel or {}).get(i, 1),
                    element_bytes=4,
                )
                for i in ids
            )

        return Trace(
            name="in words",
            batch_size=1,
            operators=tuple(
                Operator(
                    id=number,
                    name=name,
                    phase=phase,
                    time_s=1e-6,
                    inputs=tensors(inputs),
                    outputs=tensors(outputs),
                )
                for number, (phase, name, inputs, outputs) in enumerate(operators, start=1)
            ),
        )

    return build


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[2]
