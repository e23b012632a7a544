//! Images and labels.

use super::*;

fn write(path: &Path, dtype: ElementType, item_shape: &[u64], records: &[&[u8]]) {
    let options = with(own().with_dtype(dtype).with_item_shape(item_shape));
    let mut writer = Writer::create(path, &options).unwrap();
    for record in records {
        writer.append(record).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn partners_are_found_in_every_spelling() {
    for (images, labels) in [
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte.gz"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte"),
        ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"),
        ("t10k-images.idx3-ubyte", "t10k-labels-idx1-ubyte.gz"),
        ("emnist-letters-test-images-idx3-ubyte", "emnist-letters-test-labels-idx1-ubyte"),
        ("qmnist-train-images-idx3-ubyte.gz", "qmnist-train-labels-idx2-int.gz"),
        ("labels-train-images-idx3-ubyte", "labels-train-labels-idx1-ubyte"),
        ("Train-Images-idx3-ubyte", "Train-Labels-idx1-ubyte"),
        ("x-images-idx3", "x-labels-idx1"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (images, labels) = (folder.path().join(images), folder.path().join(labels));
        std::fs::write(&images, "").unwrap();
        assert_eq!(partner(&images), None);
        std::fs::write(&labels, "").unwrap();
        assert_eq!(partner(&images), Some(labels.clone()));
        assert_eq!(partner(&labels), Some(images));
    }
    assert_eq!(partner(Path::new("pictures-idx3-ubyte")), None);
}

#[test]
fn a_pair_gives_labels_of_any_type_as_tags() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("a-images-idx3-ubyte.gz");
    write(&images, ElementType::U8, &[1, 2], &[b"ab", b"cd"]);
    let missing = Pair::open(&images, &OpenOptions::default()).unwrap_err();
    assert!(missing.hint().unwrap().to_string().contains("a-labels-idx1-ubyte.gz"), "{missing:?}");

    let labels = folder.path().join("a-labels-idx1-short");
    write(&labels, ElementType::I16, &[], &[&[0xff, 0xff], &[1, 0]]);
    for path in [&images, &labels] {
        let pair = Pair::open(path, &OpenOptions::default()).unwrap();
        assert_eq!(pair.count().unwrap(), 2);
        assert_eq!(pair.read(1).unwrap(), b"cd"[..]);
        assert_eq!(pair.tags(0, Position::default(), b"").unwrap().label, Some(Label::Scalar(-1.0)));
        assert_eq!(pair.label(1).unwrap(), Label::Scalar(256.0));
        assert_eq!(pair.tags(2, Position::default(), b"").unwrap_err().kind(), ErrorKind::OutOfRange);
    }
    std::fs::remove_file(&labels).unwrap();
    write(
        &folder.path().join("a-labels-idx2-int"),
        ElementType::I32,
        &[2],
        &[&[0, 0, 0, 1, 0, 0, 0, 2][..]; 2],
    );
    let pair = Pair::open(&images, &OpenOptions::default()).unwrap();
    assert_eq!(pair.label(1).unwrap(), Label::Array(vec![1.0, 2.0]));
}

#[test]
fn labels_of_other_images_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("a-images-idx3-ubyte");
    write(&images, ElementType::U8, &[1, 1], &[b"a", b"b"]);
    write(&folder.path().join("a-labels-idx1-ubyte"), ElementType::U8, &[], &[b"1", b"2", b"3"]);
    let error = Pair::open(&images, &OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale);
    assert_eq!((error.expected(), error.found()), (Some("2 labels"), Some("3")));
}

#[test]
fn a_dataset_of_images_has_the_labels_beside_it_as_tags() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("a-images-idx3-ubyte.gz");
    let labels = folder.path().join("a-labels-idx1-ubyte");
    write(&images, ElementType::U8, &[1, 2], &[b"ab", b"cd"]);
    let label = |path: &Path, index| {
        let dataset = crate::open(path)?;
        assert_eq!(dataset.read(0)?.len(), dataset.read(1)?.len());
        assert_eq!(dataset.stored_tags_of(index, &dataset.read(index)?)?.label, None);
        Ok(dataset.tags(index)?.label)
    };
    assert_eq!(label(&images, 1).unwrap(), None);

    write(&labels, ElementType::U8, &[], &[&[7], &[9]]);
    assert_eq!(label(&images, 0).unwrap(), Some(Label::Scalar(7.0)));
    assert_eq!(label(&images, 1).unwrap(), Some(Label::Scalar(9.0)));
    assert_eq!(label(&labels, 1).unwrap(), None);

    std::fs::remove_file(&labels).unwrap();
    write(&labels, ElementType::U8, &[], &[&[7], &[9], &[11]]);
    let error: crate::base::Error = label(&images, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale);
    assert!(error.to_string().contains("expected 2 labels, found 3"), "{error}");
}

#[test]
fn labels_keep_to_their_images_where_damaged_ones_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("a-images-idx3-ubyte");
    write(&images, ElementType::U8, &[1, 2], &[b"ab", b"cd"]);
    write(&folder.path().join("a-labels-idx1-ubyte"), ElementType::U8, &[], &[&[7], &[9]]);
    let whole = std::fs::read(&images).unwrap();
    std::fs::write(&images, &whole[..whole.len() - 1]).unwrap();
    let options = OpenOptions::default().with_skip_damage(true);
    let dataset = crate::Dataset::open(&[&images], &options).unwrap();
    assert_eq!(dataset.len().unwrap(), 1);
    assert_eq!(dataset.tags(0).unwrap().label, Some(Label::Scalar(7.0)));
}
