// Microsoft's SDK for Go against the server that HOLDFAST_CONNECTION_STRING names. Prints one JSON object per check.
package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
)

var background = context.Background()

// Refusals are to be seen, not tried again.
var options = azblob.ClientOptions{ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}

type world struct {
	service   *azblob.Client
	container *container.Client
	data      []byte
}

func main() {
	service, err := azblob.NewClientFromConnectionString(os.Getenv("HOLDFAST_CONNECTION_STRING"), &options)
	if err != nil {
		panic(err)
	}
	w := world{service: service, data: make([]byte, 1<<20)}
	rand.New(rand.NewSource(1)).Read(w.data)
	name := fmt.Sprintf("go-%d", time.Now().UnixNano())
	w.container = service.ServiceClient().NewContainerClient(name)
	checks := []struct {
		title string
		run   func(world) error
	}{
		{"creates a container, once", create},
		{"puts and gets 1 MiB", putAndGet},
		{"uploads in blocks and downloads in ranges", blocks},
		{"writes under conditions", conditions},
		{"is kept out by a lease", leases},
		{"lists in pages and by folder", list},
		{"downloads with a shared access signature", signature},
		{"copies", copies},
		{"writes blobs and blocks from addresses", fromURL},
		{"sets tiers", tiers},
		{"sets tags and finds by them", tags},
		{"deletes 256 in a batch", batch},
		{"reads a snapshot", snapshots},
		{"appends", appends},
		{"writes pages", pages},
		{"deletes", remove},
	}
	for _, check := range checks {
		outcome := map[string]string{"title": check.title}
		if err := check.run(w); err != nil {
			outcome["fault"] = err.Error()
		}
		line, _ := json.Marshal(outcome)
		fmt.Println(string(line))
	}
}

func create(w world) error {
	if _, err := w.container.Create(background, &container.CreateOptions{Metadata: map[string]*string{"By": to.Ptr("go")}}); err != nil {
		return err
	}
	_, err := w.container.Create(background, nil)
	return refused(err, 409, "ContainerAlreadyExists")
}

func putAndGet(w world) error {
	for _, name := range []string{"plain", "a b/ü+%25#😀?&="} {
		client := w.container.NewBlockBlobClient(name)
		hash := md5.Sum(w.data)
		if _, err := client.Upload(background, streaming.NopCloser(bytes.NewReader(w.data)), &blockblob.UploadOptions{
			TransactionalValidation: blob.TransferValidationTypeMD5(hash[:]),
			HTTPHeaders:             &blob.HTTPHeaders{BlobContentType: to.Ptr("text/x-go")},
		}); err != nil {
			return err
		}
		answer, err := client.DownloadStream(background, nil)
		if err != nil {
			return err
		}
		if err := same(answer.Body, w.data); err != nil {
			return err
		}
		if *answer.ContentType != "text/x-go" || !bytes.Equal(answer.ContentMD5, hash[:]) {
			return fmt.Errorf("type %s, hash %x", *answer.ContentType, answer.ContentMD5)
		}
	}
	return nil
}

func blocks(w world) error {
	client := w.container.NewBlockBlobClient("blocks")
	data := bytes.Repeat(w.data, 5)
	if _, err := client.UploadBuffer(background, data, &blockblob.UploadBufferOptions{BlockSize: 1 << 20, Concurrency: 4}); err != nil {
		return err
	}
	if _, err := client.UploadStream(background, bytes.NewReader(data), &blockblob.UploadStreamOptions{BlockSize: 1 << 20, Concurrency: 4}); err != nil {
		return err
	}
	back := make([]byte, len(data))
	if _, err := client.DownloadBuffer(background, back, &blob.DownloadBufferOptions{BlockSize: 700_000, Concurrency: 4}); err != nil {
		return err
	}
	if !bytes.Equal(back, data) {
		return errors.New("other bytes came back")
	}
	id := base64.StdEncoding.EncodeToString([]byte("0000000000000000000000000000000000000000000000000000000000000000"))
	if _, err := client.StageBlock(background, id, streaming.NopCloser(bytes.NewReader([]byte("staged"))), nil); err != nil {
		return err
	}
	listed, err := client.GetBlockList(background, blockblob.BlockListTypeAll, nil)
	if err != nil {
		return err
	}
	if len(listed.CommittedBlocks) != 5 || len(listed.UncommittedBlocks) != 1 {
		return fmt.Errorf("%d and %d blocks", len(listed.CommittedBlocks), len(listed.UncommittedBlocks))
	}
	_, err = client.CommitBlockList(background, []string{id}, nil)
	return err
}

func conditions(w world) error {
	client := w.container.NewBlockBlobClient("conditions")
	put := func(conditions blob.ModifiedAccessConditions) (blockblob.UploadResponse, error) {
		return client.Upload(background, streaming.NopCloser(bytes.NewReader([]byte("x"))), &blockblob.UploadOptions{
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &conditions},
		})
	}
	absent := blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}
	first, err := put(absent)
	if err != nil {
		return err
	}
	if _, err := put(absent); refused(err, 409, "BlobAlreadyExists") != nil {
		return refused(err, 409, "BlobAlreadyExists")
	}
	unchanged := blob.ModifiedAccessConditions{IfMatch: first.ETag}
	if _, err := put(unchanged); err != nil {
		return err
	}
	_, err = put(unchanged)
	return refused(err, 412, "ConditionNotMet")
}

func leases(w world) error {
	client := w.container.NewBlockBlobClient("conditions")
	holder, err := lease.NewBlobClient(client, nil)
	if err != nil {
		return err
	}
	if _, err := holder.AcquireLease(background, 15, nil); err != nil {
		return err
	}
	_, err = client.Delete(background, nil)
	if err := refused(err, 412, "LeaseIdMissing"); err != nil {
		return err
	}
	if _, err := holder.RenewLease(background, nil); err != nil {
		return err
	}
	_, err = holder.ReleaseLease(background, nil)
	return err
}

func list(w world) error {
	var names []string
	pages := w.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: to.Ptr(int32(2))})
	for pages.More() {
		page, err := pages.NextPage(background)
		if err != nil {
			return err
		}
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	if fmt.Sprint(names) != "[a b/ü+%25#😀?&= blocks conditions plain]" {
		return fmt.Errorf("listed %v", names)
	}
	folders := w.container.NewListBlobsHierarchyPager("/", nil)
	page, err := folders.NextPage(background)
	if err != nil {
		return err
	}
	if len(page.Segment.BlobPrefixes) != 1 || *page.Segment.BlobPrefixes[0].Name != "a b/" {
		return fmt.Errorf("%d folders", len(page.Segment.BlobPrefixes))
	}
	return nil
}

func signature(w world) error {
	soon := time.Now().UTC().Add(time.Hour)
	url, err := w.container.NewBlobClient("a b/ü+%25#😀?&=").GetSASURL(sas.BlobPermissions{Read: true}, soon, nil)
	if err != nil {
		return err
	}
	guest, err := blockblob.NewClientWithNoCredential(url, &blockblob.ClientOptions{ClientOptions: options.ClientOptions})
	if err != nil {
		return err
	}
	answer, err := guest.DownloadStream(background, nil)
	if err != nil {
		return err
	}
	if err := same(answer.Body, w.data); err != nil {
		return err
	}
	_, err = guest.Delete(background, nil)
	if err := refused(err, 403, "AuthorizationPermissionMismatch"); err != nil {
		return err
	}
	url, err = w.service.ServiceClient().GetSASURL(sas.AccountResourceTypes{Container: true}, sas.AccountPermissions{List: true}, soon, nil)
	if err != nil {
		return err
	}
	lister, err := azblob.NewClientWithNoCredential(url, &options)
	if err != nil {
		return err
	}
	parts, _ := sas.ParseURL(w.container.URL())
	_, err = lister.NewListBlobsFlatPager(parts.ContainerName, nil).NextPage(background)
	return err
}

func copies(w world) error {
	target := w.container.NewBlobClient("copy")
	if _, err := target.StartCopyFromURL(background, w.container.NewBlobClient("plain").URL(), nil); err != nil {
		return err
	}
	answer, err := target.DownloadStream(background, nil)
	if err != nil {
		return err
	}
	return same(answer.Body, w.data)
}

func fromURL(w world) error {
	source, err := w.container.NewBlobClient("plain").GetSASURL(sas.BlobPermissions{Read: true}, time.Now().UTC().Add(time.Hour), nil)
	if err != nil {
		return err
	}
	client := w.container.NewBlockBlobClient("from url")
	if _, err := client.UploadBlobFromURL(background, source, nil); err != nil {
		return err
	}
	id := base64.StdEncoding.EncodeToString([]byte("one"))
	if _, err := client.StageBlockFromURL(background, id, source, &blockblob.StageBlockFromURLOptions{Range: blob.HTTPRange{Offset: 1000, Count: 500_000}}); err != nil {
		return err
	}
	if _, err := client.CommitBlockList(background, []string{id}, nil); err != nil {
		return err
	}
	answer, err := client.DownloadStream(background, nil)
	if err != nil {
		return err
	}
	if err := same(answer.Body, w.data[1000:501_000]); err != nil {
		return err
	}
	_, err = client.CopyFromURL(background, source, nil)
	return err
}

func tiers(w world) error {
	client := w.container.NewBlobClient("plain")
	if _, err := client.SetTier(background, blob.AccessTierCool, nil); err != nil {
		return err
	}
	found, err := client.GetProperties(background, nil)
	if err == nil && *found.AccessTier != "Cool" {
		err = fmt.Errorf("tier %s", *found.AccessTier)
	}
	return err
}

func tags(w world) error {
	client := w.container.NewBlobClient("plain")
	if _, err := client.SetTags(background, map[string]string{"by": "go ü"}, nil); err == nil {
		return errors.New("a letter that tags cannot have was accepted")
	}
	if _, err := client.SetTags(background, map[string]string{"by": "go"}, nil); err != nil {
		return err
	}
	found, err := w.container.FilterBlobs(background, "\"by\"='go'", nil)
	if err == nil && (len(found.Blobs) != 1 || *found.Blobs[0].Name != "plain") {
		err = fmt.Errorf("found %d", len(found.Blobs))
	}
	return err
}

func batch(w world) error {
	builder, err := w.container.NewBatchBuilder()
	if err != nil {
		return err
	}
	for at := range 256 {
		name := fmt.Sprintf("many/a b/ü+%%25#%d", at)
		if _, err := w.container.NewBlockBlobClient(name).UploadBuffer(background, []byte("x"), nil); err != nil {
			return err
		}
		if err := builder.Delete(name, nil); err != nil {
			return err
		}
	}
	answer, err := w.container.SubmitBatch(background, builder, nil)
	if err != nil {
		return err
	}
	for _, part := range answer.Responses {
		if part.Error != nil {
			return part.Error
		}
	}
	if len(answer.Responses) != 256 {
		err = fmt.Errorf("%d answers", len(answer.Responses))
	}
	return err
}

func snapshots(w world) error {
	client := w.container.NewBlockBlobClient("snapshots")
	if _, err := client.UploadBuffer(background, w.data, nil); err != nil {
		return err
	}
	taken, err := client.CreateSnapshot(background, nil)
	if err != nil {
		return err
	}
	if _, err := client.UploadBuffer(background, []byte("another"), nil); err != nil {
		return err
	}
	then, err := client.WithSnapshot(*taken.Snapshot)
	if err != nil {
		return err
	}
	answer, err := then.DownloadStream(background, nil)
	if err != nil {
		return err
	}
	return same(answer.Body, w.data)
}

func appends(w world) error {
	client := w.container.NewAppendBlobClient("append")
	if _, err := client.Create(background, nil); err != nil {
		return err
	}
	for range 2 {
		if _, err := client.AppendBlock(background, streaming.NopCloser(bytes.NewReader([]byte("x"))), nil); err != nil {
			return err
		}
	}
	answer, err := client.DownloadStream(background, nil)
	if err != nil {
		return err
	}
	return same(answer.Body, []byte("xx"))
}

func pages(w world) error {
	client := w.container.NewPageBlobClient("pages")
	if _, err := client.Create(background, 1024, nil); err != nil {
		return err
	}
	page := streaming.NopCloser(bytes.NewReader(w.data[:512]))
	if _, err := client.UploadPages(background, page, blob.HTTPRange{Offset: 512, Count: 512}, nil); err != nil {
		return err
	}
	answer, err := client.DownloadStream(background, nil)
	if err != nil {
		return err
	}
	return same(answer.Body, append(make([]byte, 512), w.data[:512]...))
}

func remove(w world) error {
	if _, err := w.container.NewBlobClient("plain").Delete(background, nil); err != nil {
		return err
	}
	_, err := w.container.NewBlobClient("plain").GetProperties(background, nil)
	if err := refused(err, 404, "BlobNotFound"); err != nil {
		return err
	}
	_, err = w.container.Delete(background, nil)
	return err
}

func same(body io.ReadCloser, expected []byte) error {
	defer body.Close()
	seen, err := io.ReadAll(body)
	if err == nil && !bytes.Equal(seen, expected) {
		err = errors.New("other bytes came back")
	}
	return err
}

func refused(err error, status int, code string) error {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return fmt.Errorf("not refused: %v", err)
	}
	if answer.StatusCode != status || answer.ErrorCode != code {
		return fmt.Errorf("%d %s instead of %d %s", answer.StatusCode, answer.ErrorCode, status, code)
	}
	return nil
}
