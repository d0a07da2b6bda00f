import com.azure.core.http.rest.Response;
import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobClientBuilder;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.batch.BlobBatchClient;
import com.azure.storage.blob.batch.BlobBatchClientBuilder;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.BlobStorageException;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.models.PageRange;
import com.azure.storage.blob.models.ParallelTransferOptions;
import com.azure.storage.blob.models.TaggedBlobItem;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import com.azure.storage.blob.sas.BlobSasPermission;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.blob.specialized.AppendBlobClient;
import com.azure.storage.blob.specialized.BlobClientBase;
import com.azure.storage.blob.specialized.BlobLeaseClient;
import com.azure.storage.blob.specialized.BlobLeaseClientBuilder;
import com.azure.storage.blob.specialized.PageBlobClient;
import com.azure.storage.common.policy.RequestRetryOptions;
import com.azure.storage.common.policy.RetryPolicyType;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Microsoft's SDK for Java against the server that HOLDFAST_CONNECTION_STRING names. Prints one JSON object per check. */
public class Client {
    interface Check {
        void run() throws Exception;
    }

    // Refusals are to be seen, not tried again.
    static final RequestRetryOptions ONCE =
            new RequestRetryOptions(RetryPolicyType.FIXED, 1, (Integer) null, null, null, null);
    static final String ODD_NAME = "a b/ü+%25#😀?&=";
    static final byte[] data = new byte[1 << 20];
    static BlobContainerClient container;

    public static void main(String[] words) {
        new Random(1).nextBytes(data);
        BlobServiceClient service = new BlobServiceClientBuilder()
                .connectionString(System.getenv("HOLDFAST_CONNECTION_STRING"))
                .retryOptions(ONCE)
                .buildClient();
        container = service.getBlobContainerClient("java-" + System.nanoTime());
        check("creates a container, once", () -> {
            container.create();
            refused(409, "ContainerAlreadyExists", container::create);
        });
        check("puts and gets 1 MiB", () -> {
            for (String name : List.of("plain", ODD_NAME)) {
                blob(name).upload(BinaryData.fromBytes(data), true);
                same(blob(name).downloadContent().toBytes(), data);
            }
        });
        check("uploads in blocks", () -> {
            byte[] large = new byte[5 << 20];
            new Random(2).nextBytes(large);
            ParallelTransferOptions blocks = new ParallelTransferOptions()
                    .setBlockSizeLong(1L << 20)
                    .setMaxSingleUploadSizeLong(1L << 20);
            blob("blocks").uploadWithResponse(
                    new BlobParallelUploadOptions(BinaryData.fromBytes(large)).setParallelTransferOptions(blocks),
                    null,
                    Context.NONE);
            same(blob("blocks").downloadContent().toBytes(), large);
        });
        check("writes under conditions", Client::conditions);
        check("is kept out by a lease", () -> {
            BlobLeaseClient lease = new BlobLeaseClientBuilder().blobClient(blob("plain")).buildClient();
            lease.acquireLease(15);
            refused(412, "LeaseIdMissing", () -> blob("plain").delete());
            lease.renewLease();
            lease.releaseLease();
        });
        check("lists in pages", () -> {
            List<String> names = new ArrayList<>();
            for (BlobItem item : container.listBlobs(new ListBlobsOptions().setMaxResultsPerPage(2), null))
                names.add(item.getName());
            if (!names.equals(List.of(ODD_NAME, "blocks", "conditions", "plain")))
                throw new Exception("listed " + names);
        });
        check("downloads with a shared access signature", () -> {
            BlobClient guest = new BlobClientBuilder()
                    .endpoint(signedUrl(blob(ODD_NAME)))
                    .retryOptions(ONCE)
                    .buildClient();
            same(guest.downloadContent().toBytes(), data);
            refused(403, "AuthorizationPermissionMismatch", guest::delete);
        });
        check("writes blobs and blocks from addresses", () -> {
            String source = signedUrl(blob(ODD_NAME));
            blob("from url").getBlockBlobClient().uploadFromUrl(source);
            blob("from url").getBlockBlobClient().stageBlockFromUrl("b25l", source, new BlobRange(1000, 500_000L));
            blob("from url").getBlockBlobClient().commitBlockList(List.of("b25l"), true);
            same(blob("from url").downloadContent().toBytes(), Arrays.copyOfRange(data, 1000, 501_000));
            blob("copy").copyFromUrl(source);
            blob("copy").beginCopy(source, null).waitForCompletion(Duration.ofSeconds(30));
            same(blob("copy").downloadContent().toBytes(), data);
        });
        check("sets tiers", () -> {
            blob("plain").setAccessTier(AccessTier.COOL);
            if (blob("plain").getProperties().getAccessTier() != AccessTier.COOL) throw new Exception("another tier");
        });
        check("sets tags and finds by them", () -> {
            blob("plain").setTags(Map.of("by", "java"));
            if (!blob("plain").getTags().equals(Map.of("by", "java"))) throw new Exception("other tags");
            for (TaggedBlobItem item : container.findBlobsByTags("\"by\"='java'"))
                if (item.getName().equals("plain")) return;
            throw new Exception("not found");
        });
        check("deletes 256 in a batch", () -> {
            List<String> urls = new ArrayList<>();
            for (int at = 0; at < 256; at++) {
                blob("many/a b/ü+%25#" + at).upload(BinaryData.fromString("x"));
                urls.add(blob("many/a b/ü+%25#" + at).getBlobUrl());
            }
            BlobBatchClient batch = new BlobBatchClientBuilder(service).buildClient();
            for (Response<Void> answer : batch.deleteBlobs(urls, null))
                if (answer.getStatusCode() != 202) throw new Exception("status " + answer.getStatusCode());
        });
        check("reads a snapshot", () -> {
            blob("snapshots").upload(BinaryData.fromBytes(data));
            BlobClientBase snapshot = blob("snapshots").createSnapshot();
            blob("snapshots").upload(BinaryData.fromString("another"), true);
            same(snapshot.downloadContent().toBytes(), data);
        });
        check("appends", () -> {
            AppendBlobClient client = blob("append").getAppendBlobClient();
            client.create();
            client.appendBlock(BinaryData.fromBytes(data).toStream(), data.length);
            same(client.downloadContent().toBytes(), data);
        });
        check("writes pages", () -> {
            PageBlobClient client = blob("pages").getPageBlobClient();
            client.create(data.length);
            PageRange range = new PageRange().setStart(0).setEnd(data.length - 1);
            client.uploadPages(range, BinaryData.fromBytes(data).toStream());
            same(client.downloadContent().toBytes(), data);
        });
        check("deletes", () -> {
            blob("plain").delete();
            refused(404, "BlobNotFound", () -> blob("plain").downloadContent());
            container.delete();
        });
        System.exit(0);
    }

    static void conditions() throws Exception {
        BlobClient blob = blob("conditions");
        blob.upload(BinaryData.fromString("first"));
        refused(409, "BlobAlreadyExists", () -> blob.upload(BinaryData.fromString("again")));
        String etag = blob.getProperties().getETag();
        BlobParallelUploadOptions unchanged = new BlobParallelUploadOptions(BinaryData.fromString("second"))
                .setRequestConditions(new BlobRequestConditions().setIfMatch(etag));
        Response<?> answer = blob.uploadWithResponse(unchanged, null, Context.NONE);
        if (answer.getStatusCode() != 201) throw new Exception("status " + answer.getStatusCode());
        refused(412, "ConditionNotMet", () -> blob.uploadWithResponse(unchanged, null, Context.NONE));
    }

    static BlobClient blob(String name) {
        return container.getBlobClient(name);
    }

    static String signedUrl(BlobClient blob) {
        return blob.getBlobUrl() + "?" + blob.generateSas(new BlobServiceSasSignatureValues(
                OffsetDateTime.now().plusHours(1), new BlobSasPermission().setReadPermission(true)));
    }

    static void same(byte[] seen, byte[] expected) throws Exception {
        if (!Arrays.equals(seen, expected)) throw new Exception("other bytes came back");
    }

    static void refused(int status, String code, Check call) throws Exception {
        try {
            call.run();
        } catch (BlobStorageException error) {
            String seen = error.getStatusCode() + " " + error.getErrorCode();
            if (!seen.equals(status + " " + code)) throw new Exception(seen + " instead of " + status + " " + code);
            return;
        }
        throw new Exception("accepted instead of " + status + " " + code);
    }

    static void check(String title, Check check) {
        String fault = "";
        try {
            check.run();
        } catch (Exception error) {
            String text = String.valueOf(error).replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\s+", " ");
            fault = ",\"fault\":\"" + text.replaceAll("[^\\x20-\\uffff]", "") + "\"";
        }
        System.out.println("{\"title\":\"" + title + "\"" + fault + "}");
    }
}
