"""Batches of one rank, epoch after epoch: the loading engine with comfort around it."""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union

from . import _core
from ._numpy import import_numpy, np
from .checks import MOST, MOST_OF_FEW, amount, flag, is_count, one_of, plain_state, whole_number
from .choices import choose_batch_size, choose_indices, choose_order
from .class_weights import Weights, choose_weights
from .errors import Error, InvalidError, UnsupportedError
from .fields import Fields, chosen_fields, decoded, stacked
from .images import ImageTransform, find_image_fields
from .mix import Mix, Source, check_fields, check_samples, open_datasets
from .ranks import find_ranks
from .samples import Failures, Sample, Transform, taken
from .shares import cores_here, processes_here

if TYPE_CHECKING:
    from .report import LoadReport

Batch = dict[str, Any]
Indices = Union[Sequence[int], "np.ndarray[Any, Any]", Callable[[_core.Dataset], Any]]
Self = TypeVar("Self", bound="Loader")
Amount = Union[int, Literal["auto"]]

atexit.register(_core.leave_loaders)  # threads of the engine must not outlive the interpreter

_loaders: weakref.WeakSet[Loader] = weakref.WeakSet()


def _renew_turns() -> None:
    """In a forked child: a thread that is not there may have a loader's turn for ever."""
    for loader in list(_loaders):
        loader._turn = threading.RLock()


os.register_at_fork(after_in_child=_renew_turns)


class Loader:
    """The samples of a dataset, or of a Mix, as batches of numbers: shuffled, decoded and assembled in C++.

    Iterate once per epoch. A batch is a dict: "image" if `image` is given, "label" and "index", "source" of a
    Mix, what `fields` names, "padding" with last="pad" and "replaced" with on_error="replace". Arrays are
    views of the batch's own memory, which lives as long as any of them. For one thread at a time; of no use
    after fork().
    """

    _called = "packtrain.Loader"
    # What can be looked at, and is set once.
    _attributes: frozenset[str] = frozenset(
        ("batch_size", "dataset", "datasets", "global_batch_size", "image", "last", "rank", "world_size")
    )

    def __init__(
        self,
        dataset: Source | Mix,
        *,
        batch_size: int | None = None,
        global_batch_size: int | None = None,
        split: str | None = None,
        seed: int = 0,
        shuffle: bool = True,
        order: Literal["auto", "global", "streams", "source"] = "auto",
        image: ImageTransform | None = None,
        image_field: str | None = None,
        fields: Fields | None = None,
        transform: Callable[[Sample], Sample] | None = None,
        indices: Indices | None = None,
        weights: Weights | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        last: Literal["drop", "pad", "keep"] = "drop",
        on_error: Literal["raise", "skip", "replace"] = "raise",
        max_errors: int | None = None,
        threads: Amount = "auto",
        prefetch: Amount = "auto",
        memory: Amount = "auto",
        window: Amount = "auto",
        stage: None = None,
    ) -> None:
        if stage is not None:
            raise UnsupportedError(
                f"stage={stage!r}: this version stages nothing; copy the dataset's folder to the nearer "
                "place, and load it from there"
            )
        one_of("last", last, ("drop", "pad", "keep"))
        one_of("on_error", on_error, ("raise", "skip", "replace"))
        if transform is not None and not callable(transform):
            raise InvalidError(f"transform= is a function of a sample, not {transform!r}")
        for name, word in (("split", split), ("image_field", image_field)):
            if word is not None and not isinstance(word, str):
                raise InvalidError(f"{name}= is a name, not {word!r}")
        mix = dataset if isinstance(dataset, Mix) else None
        self.datasets = open_datasets(dataset, split)
        # The one that is loaded, or the mix as it was given.
        self.dataset: Any = self.datasets[0] if mix is None else mix
        if image is not None and not isinstance(image, ImageTransform):
            raise InvalidError(
                f"image= is a transform, such as packtrain.RandomResizedCrop(224), not {image!r}; the field "
                "that it reads is image_field="
            )
        if image_field is not None and image is None:
            raise InvalidError(
                f"image_field={image_field!r} says which field image= reads, and there is no image=; for a "
                "field as it is, or decoded in its own size, use fields="
            )
        self.rank, self.world_size, _ = find_ranks(rank, world_size)
        self.global_batch_size = choose_batch_size(batch_size, global_batch_size, self.world_size)
        self.batch_size = self.global_batch_size // self.world_size
        self.image = image
        self.last = last
        self._on_error = on_error
        self._shuffle = flag("shuffle", shuffle)
        self._transform = None if transform is None else Transform(transform)
        self._mask = _core.ColumnMask(
            image=image is not None,
            source=mix is not None,
            padding=last == "pad",
            replaced=on_error == "replace",
        )
        own_names = [
            *(["image"] if image is not None else []),
            *["label", "index", *([] if mix is None else ["source"])],
            *(["padding"] if last == "pad" else []),
            *(["replaced"] if on_error == "replace" else []),
        ]
        wanted = [] if fields is None and image is not None else fields
        if mix is not None:
            check_fields(self.datasets, wanted)
        self._fields = chosen_fields(self.datasets[0], wanted, own_names)
        self._decodes = {name: f.decode for name, f in self._fields.items() if f.decode is not None}

        for name, given in (("indices", indices), ("weights", weights)):
            if mix is not None and given is not None and not callable(given):
                raise InvalidError(f"{name}= of a mix is a function, which is called with each dataset")
        self._parts = [
            _core.LoadPart(
                data,
                image_fields=[]
                if image is None
                else [image_field]
                if image_field is not None
                else find_image_fields(data),
                fields=list(self._fields),
                indices=chosen,
                weights=choose_weights(data, weights, chosen),
                fraction=fraction,
            )
            for data, fraction in zip(self.datasets, (1.0,) if mix is None else mix.fractions)
            for chosen in [choose_indices(data, indices)]
        ]
        if mix is not None:
            check_samples(self.datasets, self._parts)
        epoch_length = 0 if mix is None else mix.epoch_length or 0
        self._samples = samples = epoch_length or sum(len(part) for part in self._parts)
        reads_any = mix is not None or indices is not None or weights is not None
        self._order_is_free = mix is None and shuffle and order == "auto"
        self._arguments: dict[str, Any] = {
            "mixed": mix is not None,
            "epoch_length": epoch_length,
            "global_batch_size": self.global_batch_size,
            "seed": whole_number("seed", seed),
            "order": choose_order(self.datasets[0], shuffle, order, reads_any),
            # A dataset without any field has no samples either.
            "image": None if image is None or not self.datasets[0].fields else image.spec,
            "rank": self.rank,
            "world_size": self.world_size,
            "last": last,
            "on_error": on_error,
            "max_errors": (
                max(10, samples // 100) if max_errors is None else whole_number("max_errors", max_errors)
            ),
            "threads": amount("threads", threads, MOST_OF_FEW) or cores_here(),
            "prefetch": amount("prefetch", prefetch, MOST_OF_FEW),
            "memory": amount("memory", memory),
            "processes_here": processes_here(),
            "chains": 0,
            "window_bytes": amount("window", window),
            "piece_bytes": 0,
            "values": [field.spec for field in self._fields.values()],
        }
        engine = _core.Loader(self._parts, **self._arguments)
        is_plain = not self._fields and transform is None and type(self) is Loader
        self._course = _core.Course(engine, self._mask, is_plain)
        self._use(engine)
        self._turn = threading.RLock()  # threads that share an iterator take turns
        _loaders.add(self)
        self._start = (0, 0)  # epoch and consumed samples with which the next iter() begins
        self._place = (0, 0)  # the same of the batches that were handed out
        self._steps = 0  # of the newest iterator
        self._first_epoch = 0  # of every iter() without shuffling
        self._closed = False
        self._python_seconds = 0.0
        if samples and not len(self) and last == "drop":
            warnings.warn(
                f"a batch of {self.global_batch_size} is larger than the set of {samples} samples, so there "
                'is no batch at all: choose a smaller one, or last="pad" or "keep"',
                stacklevel=2,
            )
        if not samples:
            what = (
                "indices= chooses no sample"
                if indices is not None and any(len(data) for data in self.datasets)
                else f"there is no sample in {self.datasets[0].path}"
                + (f", split '{self.datasets[0].split}'" if self.datasets[0].split is not None else "")
            )
            warnings.warn(f"{what}, so there is no batch at all", stacklevel=2)

    def __setattr__(self, name: str, value: Any) -> None:
        """What would have no effect is refused; classes of a user's own may have attributes of their own."""
        is_ours = type(self).__module__.partition(".")[0] == "packtrain"
        own = getattr(type(self), name, None)
        is_settable = isinstance(own, property) and own.fset is not None
        is_first = name in self._attributes and name not in self.__dict__
        if not (name.startswith("_") or is_settable or is_first):
            if name in self._attributes or (is_ours and hasattr(type(self), name)):
                raise AttributeError(
                    f"{name} of a loader cannot be changed: make a new one. Of what it has, epoch can be set"
                )
            if is_ours:
                raise AttributeError(
                    f"a loader has no attribute {name} to be set. Of what it has, epoch can be"
                )
        object.__setattr__(self, name, value)

    def _use(self, engine: _core.Loader) -> None:
        self._engine = self._course.engine = engine
        self._stop = weakref.finalize(self, engine.stop)
        self._stop.atexit = False  # leave_loaders does it, and keeps threads that load from seeing an error

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank."""
        return self._engine.steps_of_whole_epoch

    def __iter__(self) -> Iterator[Batch]:
        """The next epoch, or the rest of that in which a loaded state was; without shuffling, always anew."""
        if self._closed:
            raise InvalidError("the loader was closed; make a new one")
        return _Epoch(self)

    def _begin(self) -> int:
        """Starts what iter() promised, and tells which generation of iterators that is.

        Not before the first batch is asked for: frameworks make iterators that they do not use, and say which
        epoch it is when they have one already.
        """
        if self._closed:
            raise InvalidError("the loader was closed; make a new one")
        self._course.generation += 1
        generation = self._course.generation
        then = None if self._shuffle else self._first_epoch  # what will be read ahead
        self._engine.start(*self._start, then)
        import_numpy()  # while the first batch is made
        if self._is_over():
            self._start = self._after(self._start[0])
            self._engine.start(*self._start, then)
        if generation != self._course.generation:  # closed or given a state while it began
            self._engine.stop()
            self._check_newest(generation)
        self._place = self._start
        self._start = self._after(self._start[0])
        self._course.taken, self._steps = 0, self._engine.steps
        self._course.inside = True
        return generation

    def _after(self, epoch: int) -> tuple[int, int]:
        """Where the next iter() begins once this epoch is done."""
        return (epoch + 1 if self._shuffle else self._first_epoch, 0)

    def _is_over(self) -> bool:
        """Whether a loaded state has left nothing of its epoch, for any rank."""
        _, consumed = self._start
        if self.last == "keep":
            return consumed > 0 and consumed >= self._samples
        return consumed > 0 and self._engine.steps == 0

    def _next(self, generation: int) -> Batch | None:
        """However long it takes. What is there, and has nothing done to it in Python, comes by Epoch."""
        course = self._course
        batch: Any
        try:
            batch = course.next_columns(generation) if course.is_plain else self._engine.next()
        except Error:
            self._check_newest(generation)  # what ended it is the better reason
            raise
        self._check_newest(generation)
        if batch is None:
            course.inside = False
            return None
        if course.is_plain:
            return batch  # type: ignore[no-any-return]
        course.inside = True
        place = self._engine.place
        try:
            columns = self._finished(batch)
        except StopIteration as error:
            raise RuntimeError("a function on samples raised StopIteration") from error
        course.taken += 1
        self._place = place  # a batch that was not handed out is not done
        return columns

    def _check_newest(self, generation: int) -> None:
        if generation != self._course.generation:
            raise InvalidError(
                "this iteration is over: the loader was iterated anew, closed, or given a state meanwhile"
            ) from None

    def _finished(self, batch: _core.Batch) -> Batch:
        columns: Batch = batch.columns(self._mask)
        for place, (name, field) in enumerate(self._fields.items()):
            values = batch.field(place)
            columns[name] = values if field.decode is not None else field.column(values)
            for about, facts in field.also:
                columns[about] = facts(values)
        if not self._decodes and self._transform is None:
            return self._arrays(columns)
        began = time.perf_counter()
        skips = self._on_error == "skip"
        places = list(range(len(batch)))  # of the samples that are left
        for name, decode in self._decodes.items():
            columns[name], failures = decoded(name, columns[name], decode, skips)
            if failures:
                self._note(batch, places, failures)
                left = [place for place in range(len(places)) if place not in failures]
                columns = {other: taken(column, left) for other, column in columns.items()}
                places = [places[place] for place in left]
        for name in self._decodes:
            columns[name] = self._stacked(columns[name])
        columns = self._arrays(columns)
        if self._transform is not None:
            columns, failures = self._transform(columns, self._stacked, skips)
            self._note(batch, places, failures)
        self._python_seconds += time.perf_counter() - began
        return columns

    def _note(self, batch: Any, places: list[int], failures: Failures) -> None:
        """Python functions failed on samples at these of `places`: to be skipped and counted, or raised."""
        for place, error in failures.items():
            source, index = int(batch.source[places[place]]), int(batch.index[places[place]])
            if self._on_error != "skip":
                if isinstance(error, Error):
                    error.where = error.where or f"sample {index} ({self.datasets[source].keys[index]})"
                raise error
            what = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            try:
                self._engine.note_bad(source, index, what)
            except Error as one_too_many:
                raise one_too_many from error

    def _arrays(self, columns: Batch) -> Batch:
        """The engine's columns as the kind of array that this loader gives."""
        return columns

    def _stacked(self, values: Any) -> Any:
        """Values of all samples as one column of that kind, if they agree."""
        return stacked(values)

    @property
    def epoch(self) -> int:
        """The epoch that is being gone through; between two, the next one. May be set for the next iter()."""
        return self._engine.epoch if self._course.inside else self._start[0]

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._first_epoch = epoch = whole_number("epoch", epoch)
        if (
            self._course.inside or self._start[0] != epoch
        ):  # otherwise a loaded state has set a place within it
            self._start = (epoch, 0)
        self._course.inside = False

    @property
    def order(self) -> str:
        """How samples are ordered; what "auto" became."""
        return str(self._arguments["order"])

    def state_dict(self) -> dict[str, int | str]:
        """Where the run stands: plain numbers and words, below 1 KB as JSON, the same on every rank.

        With the last batch of an epoch it stands at the beginning of the next.
        """
        state: dict[str, int | str] = json.loads(self._engine.state())
        course = self._course
        place = self._engine.place if course.is_plain and course.taken else self._place
        done = not course.inside or course.taken == self._steps
        # A rank that gets nothing of the last batch has had its own last one while another has one to come.
        if course.inside and self.last == "keep" and place[1] < self._samples:
            done = False
        state["epoch"], state["consumed"] = self._start if done else place
        return state

    def load_state_dict(self, state: Mapping[str, int | str]) -> None:
        """The next iter() goes on where the state was. Batch and world size may be others than they were; the
        seed, and an order that is "auto", are taken from the state. Another dataset or split is an error."""
        state = plain_state(state)
        text = json.dumps(state)
        taken = {
            name: state[name]
            for name, most in (
                ("seed", MOST),
                ("chains", MOST_OF_FEW),
                ("window_bytes", MOST),
                ("piece_bytes", MOST),
            )
            if is_count(state.get(name), most)
        }
        if self._order_is_free and state.get("order") in ("global", "streams"):  # both are shuffled
            taken["order"] = state["order"]
        engine = self._engine
        arguments = {**self._arguments, **taken}
        if any(self._arguments[name] != value for name, value in taken.items()):
            engine = _core.Loader(self._parts, **arguments, takes_over=True)
        start = engine.resume(text)
        self._course.generation += 1
        self._stop()
        self._use(engine)
        self._arguments, self._start, self._course.inside = arguments, start, False
        if not self._shuffle:  # every iter() has the epoch that was set, which the state was in
            self._first_epoch = start[0]

    def report(self) -> LoadReport:
        """The verdict on the run so far: `limit` in one word, figures as attributes, text when printed."""
        from .report import report_of

        return report_of(self._engine.report(), self._python_seconds)

    def close(self) -> None:
        """Ends all threads and gives back what was read ahead. Batches that were handed out stay valid."""
        self._closed = True
        self._course.generation += 1
        self._engine.stop()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(
            "a loader cannot be pickled: it belongs to its process, and needs no workers; make one in each "
            "process, or hand packtrain.torch.Dataset to a DataLoader"
        )

    def __repr__(self) -> str:
        of = repr(self.dataset)
        if not isinstance(self.dataset, Mix):
            of = f"{self.dataset.path!r}, split={self.dataset.split!r}"
        return (
            f"{self._called}({of}, "
            f"batch_size={self.batch_size}, rank={self.rank}, world_size={self.world_size}, "
            f"order={self.order!r}, batches={len(self)})"
        )


class _Epoch(_core.Epoch):
    """One way through an epoch. Dropped half-way, as by `break`, it ends the work that is under way."""

    def __init__(self, loader: Loader) -> None:
        super().__init__(loader._course)
        self._loader = loader

    def _next_slowly(self) -> Batch:
        """Called where no batch is there to be handed over as it is."""
        with self._loader._turn:
            if self.ended:
                raise StopIteration
            if not self.generation:
                self.generation = self._loader._begin()
            self._loader._check_newest(self.generation)
            batch = self._loader._next(self.generation)
            if batch is None:
                self.ended = True
                raise StopIteration
            return batch

    def __del__(self) -> None:
        if not self.ended and self.generation == self._loader._course.generation != 0:
            self._loader._engine.stop()
