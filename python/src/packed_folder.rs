//! `PackedFolder`: a folder packed into a file.

use crate::errors::{closed, raised};
use crate::options;
use crate::progress::{self, done};
use anyrec::format::ffrecord::PackedFolder as Folder;
use anyrec::format::ffrecord::packed_folder::{self, ListOptions, UnpackOptions};
use anyrec::format::{OpenOptions, WriteOptions};
use anyrec::io::{Access, BadNames, open_file};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A folder packed into an FFRecord file, read without unpacking it.
#[pyclass(frozen, subclass, module = "anyrec._anyrec")]
pub struct PackedFolder {
    path: PathBuf,
    check_data: bool,
    /// Held only briefly; reading needs no lock.
    open: Mutex<Option<Arc<Folder>>>,
}

impl PackedFolder {
    fn opened(&self) -> PyResult<Arc<Folder>> {
        // The lock is released before an exception is created.
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Arc::clone);
        open.ok_or_else(|| closed("the packed folder"))
    }
}

fn array(py: Python<'_>, content: Vec<u8>) -> Bound<'_, PyArray1<u8>> {
    PyArray1::from_vec(py, content)
}

#[pymethods]
impl PackedFolder {
    #[new]
    #[pyo3(signature = (file, check_data = true))]
    fn new(py: Python<'_>, file: PathBuf, check_data: bool) -> PyResult<Self> {
        let mut options = OpenOptions::default();
        options.verify = check_data;
        let folder = done(py, || Folder::open(open_file(&file, Access::Auto)?, &options))?;
        Ok(PackedFolder { path: file, check_data, open: Mutex::new(Some(Arc::new(folder))) })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let this = slf.get();
        let arguments = (this.path.as_os_str(), this.check_data).into_pyobject(slf.py())?;
        Ok((slf.get_type(), arguments))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.path.as_os_str().into_pyobject(py)?.repr()?.to_string();
        Ok(match self.num_files() {
            Ok(1) => format!("<PackedFolder {name}: 1 file>"),
            Ok(files) => format!("<PackedFolder {name}: {files} files>"),
            Err(_) => format!("<PackedFolder {name}, closed>"),
        })
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) {
        let _ = exception;
        self.close();
    }

    /// The packed file's path.
    #[getter]
    fn path(&self) -> &OsStr {
        self.path.as_os_str()
    }

    /// The number of files.
    fn num_files(&self) -> PyResult<u64> {
        Ok(self.opened()?.num_files())
    }

    /// The contents of one file, or a list of the contents of several.
    fn read<'py>(&self, py: Python<'py>, path: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(path) = path.extract::<PathBuf>() {
            return Ok(self.read_one(py, path)?.into_any());
        }
        let mut paths = Vec::new();
        for path in path.try_iter()? {
            paths.push(path?.extract::<PathBuf>()?.into_os_string().into_vec());
        }
        let folder = self.opened()?;
        let contents = done(py, || anyrec::read_batch(folder.reader(), &folder.samples(&paths)?))?;
        let arrays = contents.iter().map(|content| array(py, content.to_vec()));
        Ok(PyList::new(py, arrays.collect::<Vec<_>>())?.into_any())
    }

    /// The contents of a file.
    fn read_one<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let path = path.as_os_str().as_bytes();
        let folder = self.opened()?;
        let content = done(py, || Ok(folder.read_one(path)?.to_vec()))?;
        Ok(array(py, content))
    }

    /// The paths in a folder, relative to it; with `recursive`, those in its subfolders too.
    #[pyo3(signature = (path = None, list_file = true, list_dir = true, recursive = false))]
    fn list<'py>(
        &self,
        py: Python<'py>,
        path: Option<PathBuf>,
        list_file: bool,
        list_dir: bool,
        recursive: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut options = ListOptions::default();
        options.files = list_file;
        options.folders = list_dir;
        options.recursive = recursive;
        let path = path.unwrap_or_default();
        let paths = self.opened()?.list(path.as_os_str().as_bytes(), &options).map_err(raised)?;
        PyList::new(py, paths.into_iter().map(|path| OsString::from_vec(path.into())))
    }

    /// All files and folders, in order: (path, number of the file's record), or `None` for a
    /// folder.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let entries = self.opened()?.entries();
        PyList::new(py, entries.into_iter().map(|(path, sample)| (OsString::from_vec(path.into()), sample)))
    }

    /// Whether a file or folder with this path exists.
    fn exists(&self, path: PathBuf) -> PyResult<bool> {
        Ok(self.opened()?.exists(path.as_os_str().as_bytes()))
    }

    /// Whether a file with this path exists.
    fn is_file(&self, path: PathBuf) -> PyResult<bool> {
        Ok(self.opened()?.is_file(path.as_os_str().as_bytes()))
    }

    /// Whether a folder with this path exists.
    fn is_dir(&self, path: PathBuf) -> PyResult<bool> {
        Ok(self.opened()?.is_folder(path.as_os_str().as_bytes()))
    }

    /// Unpacks everything into a folder. Nothing is created outside it or overwritten.
    #[pyo3(signature = (folder, *, escape_names = false, skip_damage = false))]
    fn unpack<'py>(
        &self,
        py: Python<'py>,
        folder: PathBuf,
        escape_names: bool,
        skip_damage: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut options = UnpackOptions::default();
        options.skip_damage = skip_damage;
        if escape_names {
            options.bad_names = BadNames::Escape;
        }
        let packed = self.opened()?;
        let unpacked = done(py, || packed.unpack(&folder, &options))?;
        let told = PyDict::new(py);
        told.set_item("files", unpacked.files)?;
        told.set_item("folders", unpacked.folders)?;
        told.set_item("bytes", unpacked.bytes)?;
        let notices = unpacked.notices.into_iter().map(|notice| notice.message);
        told.set_item("notices", notices.collect::<Vec<_>>())?;
        Ok(told)
    }

    /// Whether the packed folder is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Closes the file. Closing twice is allowed. Arrays from it stay valid.
    fn close(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(open);
    }
}

/// Packs a folder into a new file and returns the number of files.
#[pyfunction]
#[pyo3(signature = (folder, file, overwrite = false, progress = None, *, durability = "machine"))]
pub fn pack_folder(
    py: Python<'_>,
    folder: PathBuf,
    file: PathBuf,
    overwrite: bool,
    progress: Option<Py<PyAny>>,
    durability: &str,
) -> PyResult<u64> {
    let mut options = WriteOptions::default().with_durability(options::durability(durability)?);
    options.overwrite = overwrite;
    let written =
        progress::run(py, progress, |tell| packed_folder::pack_folder(&folder, &file, &options, tell))?;
    // The last sample is the tree, not a file.
    Ok(written.records.saturating_sub(1))
}

/// The total size of the files below a folder, in bytes.
#[pyfunction]
pub fn folder_size(py: Python<'_>, folder: PathBuf) -> PyResult<u64> {
    done(py, || packed_folder::folder_size(&folder))
}
