# Names that plugins register, for editors and type checkers; made by: make stubs

from cntk.readers.arrays.deserializer import NumpyDeserializer as NumpyDeserializer
from cntk.readers.cbf.deserializer import CBFDeserializer as CBFDeserializer
from cntk.readers.ctf.deserializer import CTFDeserializer as CTFDeserializer
from cntk.readers.image.base64 import Base64ImageDeserializer as Base64ImageDeserializer
from cntk.readers.image.deserializer import ImageDeserializer as ImageDeserializer
from cntk.readers.parquet.deserializer import ParquetDeserializer as ParquetDeserializer
from cntk.readers.speech.binary_mlf import HTKMLFBinaryDeserializer as HTKMLFBinaryDeserializer
from cntk.readers.speech.features import HTKFeatureDeserializer as HTKFeatureDeserializer
from cntk.readers.speech.lattice import LatticeDeserializer as LatticeDeserializer
from cntk.readers.speech.mlf import HTKMLFDeserializer as HTKMLFDeserializer

__all__ = [
    "Base64ImageDeserializer",
    "CBFDeserializer",
    "CTFDeserializer",
    "HTKFeatureDeserializer",
    "HTKMLFBinaryDeserializer",
    "HTKMLFDeserializer",
    "ImageDeserializer",
    "LatticeDeserializer",
    "NumpyDeserializer",
    "ParquetDeserializer",
]
